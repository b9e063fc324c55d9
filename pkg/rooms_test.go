// Package pkg_test checks the dependencies between the packages.
package pkg_test

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	module = "github.com/openshift-agent/cluster-api-provider-openshift-agent/"
	// plugin is the folder of the module of the kubectl plugin.
	plugin = "cmd/kubectl-openshift_agent"
)

// pure are the packages without side effects: facts in; objects, decisions or conditions out. They may only
// import each other and the API types.
var (
	pure = sets.New(
		"bootstrap/internal/desired",
		"bootstrap/internal/facts",
		"bootstrap/internal/hostnetwork",
		"bootstrap/internal/hostrole",
		"bootstrap/internal/ignition",
		"bootstrap/internal/joining",
		"bootstrap/internal/ownership",
		"bootstrap/internal/preflight",
		"bootstrap/internal/status",
		"controlplane/internal/approval",
		"controlplane/internal/attempt",
		"controlplane/internal/capacity",
		"controlplane/internal/decision",
		"controlplane/internal/desired",
		"controlplane/internal/desired/registration",
		"controlplane/internal/facts",
		"controlplane/internal/installationstate",
		"controlplane/internal/openshift",
		"controlplane/internal/ownership",
		"controlplane/internal/preflight",
		"controlplane/internal/quorum",
		"controlplane/internal/remediation",
		"controlplane/internal/removal",
		"controlplane/internal/retry",
		"controlplane/internal/scaling",
		"controlplane/internal/status",
		"controlplane/internal/status/condition",
		"controlplane/internal/status/etcdmember",
		"controlplane/internal/status/health",
		"controlplane/internal/status/installed",
		"controlplane/internal/status/replicas",
		"controlplane/internal/status/rollout",
		"controlplane/internal/tasks",
		"controlplane/internal/upgrade",
		"controlplane/internal/upgradeplan",
		"controlplane/internal/versioning",
		"controlplane/internal/workers",
		"controlplane/internal/workload",
		"pkg/assisted",
		"pkg/assisted/v1beta1",
		"pkg/bound",
		"pkg/contract",
		"pkg/findings",
		"pkg/metal3", "pkg/metal3/choice",
		"pkg/reach",
		"pkg/versions",
	)
	apis = sets.New("bootstrap/api/v1beta1", "controlplane/api/v1beta1")
)

// pureInPlugin are the packages without side effects of the kubectl plugin, which is another module.
var pureInPlugin = sets.New(plugin+"/judge", plugin+"/page", plugin+"/redact", plugin+"/report", plugin+"/snapshot")

// TestPureRoomsReachNoClientOfOurs also checks indirect imports, which the linter does not. It ignores
// foreign packages: those of assisted-service's and Hive's API import controller-runtime.
func TestPureRoomsReachNoClientOfOurs(t *testing.T) {
	for dir, rooms := range map[string]sets.Set[string]{".": pure, "../" + plugin: pureInPlugin} {
		t.Run(dir, func(t *testing.T) {
			g := NewWithT(t)
			list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`)
			list.Dir = dir
			for room := range rooms {
				list.Args = append(list.Args, module+room)
			}
			out, err := list.Output()
			g.Expect(err).NotTo(HaveOccurred())
			for line := range strings.Lines(string(out)) {
				packages := strings.Fields(line)
				for _, dependency := range packages[1:] {
					if room, ours := strings.CutPrefix(dependency, module); ours {
						g.Expect(pure.Has(room) || pureInPlugin.Has(room) || apis.Has(room)).To(BeTrue(), "%s reaches %s",
							strings.TrimPrefix(packages[0], module), room)
					}
				}
			}
			g.Expect(strings.Count(string(out), "\n")).To(Equal(rooms.Len()), "all packages were listed")
		})
	}
}
