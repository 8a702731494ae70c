// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/fsserver/edit"
	"github.com/postern-gate/postern/internal/mcpserver"
)

// tool is one row of the table: everything that is known of a tool.
type tool struct {
	name, about string
	hints       mcpserver.Hints
	load        mcpserver.Load
	params      []param
	run         func(context.Context, *call) (reply, error)
}

// param is one parameter. Where its value goes says of which type it is.
type param struct {
	name, about string
	required    bool
	choices     []string
	// use is what the tool does with the path that the parameter holds; a
	// parameter that is no path has none.
	use core.Action
	// each says that the paths of a list stand for themselves: one that is
	// refused doesn't refuse the call.
	each bool
	// file says that the path can only be a file's, so that a slash at its end
	// is refused.
	file bool
	// filled says that an empty string is refused.
	filled bool
	// positive says that 0 is refused of a number.
	positive bool
	bind     func(*arguments) any
}

// arguments are the values of one call.
type arguments struct {
	path, source, destination string
	paths                     []string
	content, pattern, sortBy  string
	query, glob, cursor       string
	exclude                   []string
	head, tail, maxBytes      count
	offset, length            count
	line, lines               count
	context, limit            count
	substring, literal        bool
	ignoreCase                bool
	includeIgnored            bool
	edits                     []edit.Edit
	recursive                 bool
	dryRun, confirm           bool
	ifMatch                   string
}

// count is a number that may be absent; it is never negative.
type count struct {
	n     int64
	given bool
}

func pathParam(use core.Action) param {
	return param{name: "path", required: true, use: use, bind: func(a *arguments) any { return &a.path }}
}

func fileParam(use core.Action) param {
	p := pathParam(use)
	p.file = true
	return p
}

func sourceParam(use core.Action) param {
	return param{name: "source", required: true, use: use, bind: func(a *arguments) any { return &a.source }}
}

func destinationParam(use core.Action) param {
	return param{name: "destination", required: true, use: use, bind: func(a *arguments) any { return &a.destination }}
}

var (
	paramContent = param{name: "content", required: true, bind: func(a *arguments) any { return &a.content }}
	paramExclude = param{
		name: "excludePatterns", about: "globs to leave out; a plain name at any depth",
		bind: func(a *arguments) any { return &a.exclude },
	}
	paramsRange = []param{
		{name: "head", about: "first N lines only", bind: func(a *arguments) any { return &a.head }},
		{name: "tail", about: "last N lines only", bind: func(a *arguments) any { return &a.tail }},
		{name: "max_bytes", about: "cut after N bytes; also for files over the limit", bind: func(a *arguments) any { return &a.maxBytes }},
	}
	paramsBytes = []param{
		{name: "offset", about: "from byte N", bind: func(a *arguments) any { return &a.offset }},
		{name: "length", bind: func(a *arguments) any { return &a.length }},
	}
	paramsLines = []param{
		{name: "line", about: "from line N, the first is 1", positive: true, bind: func(a *arguments) any { return &a.line }},
		{name: "lines", bind: func(a *arguments) any { return &a.lines }},
	}
	paramsPage = []param{
		{name: "limit", positive: true, bind: func(a *arguments) any { return &a.limit }},
		{name: "cursor", about: "of the page before", filled: true, bind: func(a *arguments) any { return &a.cursor }},
	}
	paramIfMatch = param{
		name: "ifMatch", about: "etag that must still hold", filled: true, bind: func(a *arguments) any { return &a.ifMatch },
	}
	paramDryRun  = param{name: "dry_run", about: "check everything, change nothing", bind: func(a *arguments) any { return &a.dryRun }}
	paramConfirm = param{name: "confirm", bind: func(a *arguments) any { return &a.confirm }}
)

// parameters puts those of one tool together.
func parameters(first []param, more ...param) []param {
	return append(append([]param(nil), first...), more...)
}

func changing(own ...param) []param { return parameters(own, paramDryRun, paramConfirm) }

func changingMatch(own ...param) []param {
	return parameters(own, paramIfMatch, paramDryRun, paramConfirm)
}

var (
	reads       = mcpserver.Hints{ReadOnly: true}
	destructive = mcpserver.Hints{Destructive: true}
	additive    = mcpserver.Hints{}
)

// registry is the table, in the order of tools/list: the reference server's
// fourteen in its order, then ours.
func registry() []tool {
	return slices.Concat(readTools(), writeTools(), listTools(), []tool{moveTool()}, findTools(), ownTools())
}

func readTools() []tool {
	readText := slices.Concat([]param{fileParam(core.FSRead)}, paramsRange, paramsBytes, paramsLines)
	return []tool{
		{name: "read_file", about: "Deprecated: use read_text_file.", hints: reads, params: readText, run: readTextFile},
		{
			name: "read_text_file", about: "Read a text file, whole or a part: first or last lines, a range of lines or bytes. Its etag is what ifMatch takes.",
			hints: reads, params: readText, run: readTextFile,
		},
		{
			name: "read_media_file", about: "Read any file as base64: image, audio or a blob.",
			hints: reads, params: parameters([]param{fileParam(core.FSRead)}, paramsBytes...), run: readMediaFile,
		},
		{
			name: "read_multiple_files", about: "Read several text files at once; one that fails does not stop the others.", hints: reads,
			params: []param{{name: "paths", required: true, use: core.FSRead, each: true, file: true, bind: func(a *arguments) any { return &a.paths }}},
			run:    readMultipleFiles,
		},
	}
}

func writeTools() []tool {
	return []tool{
		{
			name: "write_file", about: "Create a file, or replace its whole content.",
			hints:  mcpserver.Hints{Destructive: true, Idempotent: true},
			params: changingMatch(fileParam(core.FSWrite), paramContent), run: writeFile,
		},
		{
			name: "edit_file", about: "Replace exact pieces of a text file, all of them or none. Each oldText must occur exactly once unless replaceAll. Returns a diff.",
			hints: destructive, load: mcpserver.Edit, run: editFile,
			params: changingMatch(
				fileParam(core.FSWrite),
				param{name: "edits", required: true, bind: func(a *arguments) any { return &a.edits }},
				param{name: "dryRun", about: "as dry_run", bind: func(a *arguments) any { return &a.dryRun }},
			),
		},
		{
			name: "create_directory", about: "Create a directory with missing parents; fine if it exists.",
			hints: mcpserver.Hints{Idempotent: true}, params: changing(pathParam(core.FSCreate)), run: createDirectory,
		},
	}
}

func listTools() []tool {
	return []tool{
		{
			name: "list_directory", about: "List a directory: [FILE], [DIR], [LINK] and other kinds.",
			hints: reads, params: parameters([]param{pathParam(core.FSList)}, paramsPage...), run: listDirectory,
		},
		{
			name: "list_directory_with_sizes", about: "List a directory with sizes and totals.", hints: reads, run: listWithSizes,
			params: parameters([]param{pathParam(core.FSList), {
				name: "sortBy", choices: []string{"name", "size"}, bind: func(a *arguments) any { return &a.sortBy },
			}}, paramsPage...),
		},
		{
			name: "directory_tree", about: "Everything beneath a directory as JSON: name, type, children.",
			hints: reads, load: mcpserver.Walk, params: parameters([]param{pathParam(core.FSList), paramExclude}, paramsPage...), run: directoryTree,
		},
	}
}

func moveTool() tool {
	return tool{
		name: "move_file", about: "Move or rename a file, directory or link. Fails if the destination exists.",
		hints: destructive, params: changingMatch(sourceParam(core.FSRename), destinationParam(core.FSRename)), run: moveFile,
	}
}

func findTools() []tool {
	return []tool{
		{
			name: "search_files", about: "Find names beneath a directory by a glob on the path relative to it, as **/*.ts; a plain name at any depth. Returns full paths.",
			hints: reads, load: mcpserver.Walk, run: searchFiles,
			params: parameters([]param{
				pathParam(core.FSList),
				{name: "pattern", required: true, bind: func(a *arguments) any { return &a.pattern }},
				paramExclude,
				{name: "substring", about: "pattern is a part of the name, in any case", bind: func(a *arguments) any { return &a.substring }},
			}, paramsPage...),
		},
		{
			name: "get_file_info", about: "Size, times, permissions, type and etag of a file or directory.",
			hints: reads, params: []param{pathParam(core.FSList)}, run: getFileInfo,
		},
		{
			name: "list_allowed_directories", about: "The directories that may be accessed, with all beneath them.",
			hints: reads, run: listAllowedDirectories,
		},
	}
}

// searchContentTool finds text in files. Its path is judged as a list is, and
// each file that is opened beneath it by itself as a read is.
func searchContentTool() tool {
	return tool{
		name: "search_content", about: "Find lines in a file, or in all beneath a directory but what .gitignore names: path:line: text.",
		hints: reads, load: mcpserver.Walk, run: searchContent,
		params: parameters([]param{
			pathParam(core.FSList),
			{name: "query", about: "RE2 expression", required: true, bind: func(a *arguments) any { return &a.query }},
			{name: "literal", about: "query is plain text", bind: func(a *arguments) any { return &a.literal }},
			{name: "ignoreCase", bind: func(a *arguments) any { return &a.ignoreCase }},
			{name: "glob", about: "only such files; without a slash at any depth", filled: true, bind: func(a *arguments) any { return &a.glob }},
			paramExclude,
			{name: "includeIgnored", about: "search what .gitignore leaves out too", bind: func(a *arguments) any { return &a.includeIgnored }},
			{name: "context", about: "N lines around each match", bind: func(a *arguments) any { return &a.context }},
		}, paramsPage...),
	}
}

// ownTools are those that the reference server has not.
func ownTools() []tool {
	return []tool{
		searchContentTool(),
		{
			name: "append_file", about: "Add to the end of a file, or create it.",
			hints: additive, params: changingMatch(fileParam(core.FSWrite), paramContent), run: appendFile,
		},
		{
			name: "copy_file", about: "Copy a file or directory. Fails if the destination exists.", hints: additive, load: mcpserver.Walk,
			params: changing(sourceParam(core.FSRead), destinationParam(core.FSCreate)), run: copyFile,
		},
		{
			name: "delete_file", about: "Delete a file, link or directory. Needs confirm: true; a policy may want a person's yes besides.", hints: destructive,
			params: changingMatch(pathParam(core.FSDelete), param{
				name: "recursive", about: "a directory with all in it", bind: func(a *arguments) any { return &a.recursive },
			}), run: deleteFile,
		},
	}
}
