// SPDX-License-Identifier: Apache-2.0

package export

import (
	"path"

	"github.com/postern-gate/postern/internal/state/audit/records"
)

// OCSFVersion is the schema that OCSF maps to.
const OCSFVersion = "1.7.0"

// OCSFEvent is an event of one of three classes: File System Activity for
// fs.*, Event Log Activity for what happened to the log itself, API Activity
// for tool.call and all that has no class of its own here.
//
// Sources: https://schema.ocsf.io/1.7.0/classes/file_activity, …/api_activity,
// …/event_log_actvity (it is spelled like that there),
// https://schema.ocsf.io/1.7.0/profiles/security_control.
type OCSFEvent struct {
	ClassUID      int           `json:"class_uid"`
	ClassName     string        `json:"class_name"`
	CategoryUID   int           `json:"category_uid"`
	CategoryName  string        `json:"category_name"`
	ActivityID    int           `json:"activity_id"`
	ActivityName  string        `json:"activity_name"`
	TypeUID       int           `json:"type_uid"`
	Time          int64         `json:"time"` // milliseconds
	SeverityID    int           `json:"severity_id"`
	Severity      string        `json:"severity"`
	StatusID      int           `json:"status_id"`
	Status        string        `json:"status"`
	StatusCode    string        `json:"status_code,omitempty"`
	StatusDetail  string        `json:"status_detail,omitempty"`
	ActionID      int           `json:"action_id"`
	Action        string        `json:"action"`
	DispositionID int           `json:"disposition_id"`
	Disposition   string        `json:"disposition"`
	Policy        *OCSFPolicy   `json:"policy,omitempty"`
	Metadata      OCSFMetadata  `json:"metadata"`
	Actor         OCSFActor     `json:"actor"`
	Device        *OCSFEndpoint `json:"device,omitempty"`       // of system classes
	SrcEndpoint   *OCSFEndpoint `json:"src_endpoint,omitempty"` // of API Activity
	File          *OCSFFile     `json:"file,omitempty"`
	API           *OCSFAPI      `json:"api,omitempty"`
	Resources     []OCSFEntity  `json:"resources,omitempty"`
	LogName       string        `json:"log_name,omitempty"` // of Event Log Activity
	Unmapped      OCSFUnmapped  `json:"unmapped"`
}

// OCSFPolicy is the policy that decided.
type OCSFPolicy struct {
	UID string `json:"uid"`
}

// OCSFMetadata says where the event comes from.
type OCSFMetadata struct {
	Version        string      `json:"version"`
	Profiles       []string    `json:"profiles"`
	Product        OCSFProduct `json:"product"`
	LogName        string      `json:"log_name"`
	EventCode      string      `json:"event_code"`
	CorrelationUID string      `json:"correlation_uid,omitempty"`
}

// OCSFProduct is the program that recorded it.
type OCSFProduct struct {
	Name       string `json:"name"`
	VendorName string `json:"vendor_name"`
	Version    string `json:"version,omitempty"`
}

// OCSFActor is the agent.
type OCSFActor struct {
	AppName string       `json:"app_name"`
	Session *OCSFSession `json:"session,omitempty"`
}

// OCSFSession is the session of a client.
type OCSFSession struct {
	UID string `json:"uid"`
}

// OCSFEndpoint is this machine.
type OCSFEndpoint struct {
	Hostname string `json:"hostname"`
	TypeID   int    `json:"type_id"`
}

// OCSFFile is a file. Whether it is a folder is known of a listing only.
type OCSFFile struct {
	Name   string `json:"name"`
	Path   string `json:"path,omitempty"` // by its canonical name, root://…; not of private names
	TypeID int    `json:"type_id"`
}

// OCSFAPI is the tool that was called.
type OCSFAPI struct {
	Operation string       `json:"operation"`
	Service   *OCSFService `json:"service,omitempty"`
}

// OCSFService is the server that has the tool.
type OCSFService struct {
	Name string `json:"name"`
}

// OCSFEntity is what the operation was about.
type OCSFEntity struct {
	Name string `json:"name"`
}

// OCSFUnmapped are the fields that the schema has no place for.
type OCSFUnmapped struct {
	Op       string `json:"op"`
	Decision string `json:"decision"`
	Source   string `json:"source"`
	Level    string `json:"level"`
	Was      string `json:"was,omitempty"`
	Found    string `json:"found,omitempty"`
	N        int64  `json:"n,omitempty"`
	Approval string `json:"approval,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Approver string `json:"approver,omitempty"`
	Shown    string `json:"shown,omitempty"`
	Folder   string `json:"folder,omitempty"`
}

// value is one of an enumeration, with its caption.
type value struct {
	id      int
	caption string
}

// fileActivities are the activities of File System Activity. To watch is none
// of them.
var fileActivities = map[string]value{
	"fs.read": {2, "Read"}, "fs.list": {2, "Read"}, "fs.watch": {99, "Watch"}, "fs.write": {3, "Update"},
	"fs.create": {1, "Create"}, "fs.rename": {5, "Rename"}, "fs.delete": {4, "Delete"},
}

// logActivities are those of Event Log Activity; the rest are Other.
var logActivities = map[string]value{"pruned": {2, "Delete"}, "renewed": {4, "Archive"}}

// unknownAgent stands for the agent of a record that has none, since an actor
// must have something.
const unknownAgent = "unknown"

// OCSF maps a record.
func OCSF(r *records.Record, o Origin) OCSFEvent {
	e := OCSFEvent{
		Time: r.Time.UnixMilli(), StatusCode: r.Code, StatusDetail: r.Reason,
		Metadata: OCSFMetadata{
			Version: OCSFVersion, Profiles: []string{"security_control"}, LogName: "postern audit", EventCode: r.Event,
			Product: OCSFProduct{"Postern", "Postern", o.Version}, CorrelationUID: r.Corr,
		},
		Actor:    OCSFActor{AppName: r.Agent},
		Unmapped: OCSFUnmapped{r.Op, r.Decision, r.Source, r.Level, r.Was, r.Found, r.N, r.Approval, r.Kind, r.Approver, r.Shown, r.Folder},
	}
	switch {
	case r.Op == logOp:
		e.Actor.AppName = "postern"
	case r.Agent == "":
		e.Actor.AppName = unknownAgent
	}
	if r.Session != "" {
		e.Actor.Session = &OCSFSession{r.Session}
	}
	if r.Policy != "" {
		e.Policy = &OCSFPolicy{r.Policy}
	}
	e.severity(r)
	e.status(r)
	e.disposition(r)
	e.classify(r, o)
	return e
}

// classify chooses the class and fills in what it requires.
func (e *OCSFEvent) classify(r *records.Record, o Origin) {
	here := &OCSFEndpoint{Hostname: o.Host} // type_id 0: not known
	if o.Host == "" {
		here.Hostname = "localhost"
	}
	var activity value
	switch {
	case isFile(r) && !aboutApproval(r):
		e.class(value{1, "File System Activity"}, value{1, "System Activity"})
		activity = fileActivities[r.Op]
		e.Device, e.File = here, file(r)
	case r.Op == logOp:
		e.class(value{8, "Event Log Activity"}, value{1, "System Activity"})
		activity = logActivities[r.Event]
		e.Device, e.LogName = here, "postern audit"
		if r.Resource != "" {
			e.File = file(r)
		}
	default:
		e.class(value{3, "API Activity"}, value{6, "Application Activity"})
		e.SrcEndpoint, e.API = here, &OCSFAPI{Operation: r.Op}
		if aboutApproval(r) {
			e.API.Operation = "approval." + r.Event
		} else if server, tool := split(r.Resource); r.Op == toolCall && server != "" {
			e.API = &OCSFAPI{tool, &OCSFService{server}}
		}
		if r.Resource != "" {
			e.Resources = []OCSFEntity{{r.Resource}}
		}
	}
	if activity.id == 0 {
		activity = value{99, r.Op}
		if r.Op == logOp || aboutApproval(r) {
			activity.caption = r.Event
		}
	}
	e.ActivityID, e.ActivityName = activity.id, activity.caption
	e.TypeUID = e.ClassUID*100 + e.ActivityID
}

func (e *OCSFEvent) class(class, category value) {
	e.ClassUID, e.ClassName = category.id*1000+class.id, class.caption
	e.CategoryUID, e.CategoryName = category.id, category.caption
}

func file(r *records.Record) *OCSFFile {
	f := &OCSFFile{Name: r.Resource}
	if root, name := split(r.Resource); root != "" {
		f.Name, f.Path = path.Base("/"+name), r.Resource
	}
	if f.Name == "" {
		f.Name = unknownAgent
	}
	if r.Op == logOp {
		f.TypeID = 1
	}
	if r.Op == "fs.list" {
		f.TypeID = 2
	}
	return f
}

func (e *OCSFEvent) severity(r *records.Record) {
	v := value{1, "Informational"}
	switch {
	case broken(r.Event):
		v = value{4, "High"}
	case r.Event == outcomeUnknown, r.Event == "reads_unrecorded", r.Event == "outside_missed":
		v = value{3, "Medium"}
	case r.Event == refusal, r.Event == failure, r.Event == "torn_tail", r.Event == "clock_back":
		v = value{2, "Low"}
	}
	e.SeverityID, e.Severity = v.id, v.caption
}

// status: a decision is recorded before its effect, so how that ended is not
// known; an intent has an outcome of its own.
func (e *OCSFEvent) status(r *records.Record) {
	v := value{0, "Unknown"}
	switch r.Event {
	case outcome:
		v = value{1, "Success"}
	case refusal, failure:
		v = value{2, "Failure"}
	case intent, preview:
		v = value{99, r.Event}
	}
	if undecided(r) || aboutApproval(r) {
		v = value{99, r.Event}
	}
	e.StatusID, e.Status = v.id, v.caption
}

// disposition is what postern did as a control: also a failure was allowed.
func (e *OCSFEvent) disposition(r *records.Record) {
	action, disposition := value{1, "Allowed"}, value{1, "Allowed"}
	switch {
	case undecided(r), aboutApproval(r):
		action, disposition = value{99, r.Event}, value{17, "Logged"}
	case r.Event == refusal && r.Decision != allow:
		action, disposition = value{2, "Denied"}, value{2, "Blocked"}
	case r.Event == preview:
		disposition = value{16, "No Action"}
	case r.Event == failure, r.Event == refusal:
		disposition = value{27, "Error"}
	case r.Decision != allow:
		disposition = value{8, "Approved"} // by a person, after the policy asked
	}
	e.ActionID, e.Action = action.id, action.caption
	e.DispositionID, e.Disposition = disposition.id, disposition.caption
}
