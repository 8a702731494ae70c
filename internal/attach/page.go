// SPDX-License-Identifier: Apache-2.0

package attach

// The pages that answers point to: an installed program has no docs folder
// beside it.
const (
	docs = "https://github.com/postern-gate/postern/blob/main/docs/"
	// ClientsPage has a recipe for each client, and how its own tools are turned off.
	ClientsPage = docs + "clients.md"
	// DeployPage has the deployment checklist.
	DeployPage = docs + "deploy.md"
)
