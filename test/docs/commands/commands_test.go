package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/docs"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

const (
	// watched is how long a command runs that would watch for ever.
	watched = 2 * time.Second
	// patience is how long any other may take on a busy machine.
	patience = 3 * time.Minute
)

// terminal is where commands are run: a folder like that of a checkout after make release, with the programs that they need.
type terminal struct {
	folder string
	env    []string
	hub    *env.Env
}

func TestCommandsOfDocuments(t *testing.T) {
	terminal := openTerminal(t)
	documents, err := docs.Read("../../..")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	terminal.run(t, "kubectl apply --filename hub.yaml")
	count, changed := 0, false
	for _, d := range documents {
		for _, block := range d.Blocks("console") {
			excused, _ := docs.Excused("../../..", block.Remark, block.Text)
			commands := slices.DeleteFunc(docs.Commands(block.Text), docs.Built)
			if excused || len(commands) == 0 {
				continue // its remark is tested in test/docs
			}
			count++
			t.Run(fmt.Sprintf("%s:%d", d.Path, block.Line), func(t *testing.T) {
				if changed {
					terminal.restore(t)
				}
				changed = slices.ContainsFunc(commands, changes)
				if out, err := terminal.try(t, script(commands)); err != nil {
					t.Errorf("%v:\n%s\n%s\nFix the commands, add the named objects to test/docs/commands/testdata/hub.yaml, or state "+
						"right before the block which test runs them, or which requirement is missing, "+
						"as test/docs/commands/doc.go describes", err, block.Text, out)
				}
			})
		}
	}
	NewWithT(t).Expect(count).To(BeNumerically(">", 40))
}

// endless are commands that end with an event, which never happens here. An error in their arguments is reported
// immediately. kubectl openshift-agent wait ends with the exit code 3 if another document has deleted its Cluster.
var endless = regexp.MustCompile(`^(?:kubectl|oc) (?:openshift-agent )?wait |^timeout | --watch`)

// reading are commands that change nothing.
var reading = regexp.MustCompile(`^(?:kubectl|oc) (?:(?:-n|--namespace) \S+ |-A |openshift-agent ` +
	`)*(?:status|why|hosts|get|describe|explain|events|wait|auth can-i|version) [^|;&>$]*$`)

// changes reports whether a command may change what others find.
func changes(command string) bool { return !reading.MatchString(command) }

func TestCommandsThatChangeNothing(t *testing.T) {
	g := NewWithT(t)
	for _, command := range []string{
		"kubectl get machines", "kubectl -n hub describe cluster c", "oc get nodes # all",
		"kubectl wait cluster/c --for=condition=Available", "kubectl openshift-agent status c", "kubectl openshift-agent hosts lab",
	} {
		g.Expect(changes(command)).To(BeFalse(), command)
	}
	for _, command := range []string{
		"kubectl delete machine m", "kubectl get x -o name | xargs kubectl delete",
		"kubectl get x; kubectl delete y", "kubectl get x > hub.yaml", "clusterctl move", "kubectl -n get delete machine m",
		"kubectl get $(kubectl delete x)",
	} {
		g.Expect(changes(command)).To(BeTrue(), command)
	}
}

// script runs commands as an attentive user does: up to the first that fails, and none for ever.
func script(commands []string) string {
	var lines strings.Builder
	lines.WriteString("set -euo pipefail\n")
	for _, command := range commands {
		if endless.MatchString(command) {
			command, _, _ = strings.Cut(command, " #")
			command = fmt.Sprintf("timeout %.0f %s || case $? in 124|3) ;; *) exit 1 ;; esac", watched.Seconds(), command)
		}
		lines.WriteString(command + "\n")
	}
	return lines.String()
}

// generate writes the cluster that the pages about hubs apply. Its values are placeholders, too.
const generate = `export BASE_DOMAIN=lab.example.com OPENSHIFT_VERSION=4.19.10 MACHINE_NETWORK=192.168.111.0/24
export API_VIP=192.168.111.5 INGRESS_VIP=192.168.111.6 PULL_SECRET="$(cat pull-secret.json)"
clusterctl generate cluster lab --from out/control-plane-openshift-agent/v0.1.0/cluster-template.yaml --target-namespace lab \
  --control-plane-machine-count 3 --worker-machine-count 0 > lab.yaml`

// openTerminal starts a hub with Cluster API and Metal3, and installs what make release writes.
func openTerminal(t *testing.T) *terminal {
	t.Helper()
	g := NewWithT(t)
	builder, err := components.NewBuilder(".", os.Stdout)
	g.Expect(err).NotTo(HaveOccurred())
	programs := t.TempDir()
	for name, component := range map[string]components.Component{
		"kubectl": components.Kubectl, "oc": components.Kubectl,
		"clusterctl": components.Clusterctl, "kubectl-openshift_agent": components.Plugin,
	} {
		program, err := builder.Program(t.Context(), component)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Symlink(program, filepath.Join(programs, name))).To(Succeed())
	}
	hub, err := env.Start(t.Context(), env.Options{
		Dir: filepath.Join(builder.Root(), "_artifacts", "docs"), Out: os.Stdout, LeaveSignals: true,
		Bootstrap: env.ManagerOptions{Disabled: true}, ControlPlane: env.ManagerOptions{Disabled: true},
		Core: env.ManagerOptions{Variables: map[string]string{"EXP_RUNTIME_SDK": "true", "EXP_IN_PLACE_UPDATES": "true"}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(hub.Stop)

	terminal := &terminal{folder: t.TempDir(), hub: hub, env: append(os.Environ(),
		"PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+hub.Kubeconfig(), "HOME="+t.TempDir(),
		"CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off")}
	g.Expect(os.Symlink(filepath.Join(builder.Root(), "config"), filepath.Join(terminal.folder, "config"))).To(Succeed())
	for _, file := range []string{
		"hub.yaml", "foreign.yaml", "../../../clusterctl/testdata/cert-manager.yaml",
		"pull-secret.json", "registries.conf", "ca-bundle.crt",
	} {
		path, err := filepath.Abs(filepath.Join("testdata", file))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Symlink(path, filepath.Join(terminal.folder, filepath.Base(file)))).To(Succeed())
	}
	terminal.run(t, "kubectl apply --filename foreign.yaml --filename cert-manager.yaml && kubectl wait "+
		"--for=condition=Established --timeout=3m --filename foreign.yaml --filename cert-manager.yaml")
	release := exec.CommandContext(t.Context(), "make", "release", "VERSION=v0.1.0",
		"REGISTRY=registry.example.com/openshift-agent", "PLUGINS=false", "OUT="+filepath.Join(terminal.folder, "out"))
	release.Dir = builder.Root()
	out, err := release.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	terminal.run(t, generate)
	for _, provider := range []string{"bootstrap", "control-plane"} {
		terminal.run(t, fmt.Sprintf("clusterctl generate yaml --from out/%s-openshift-agent/v0.1.0/%s-components.yaml | "+
			"kubectl apply --server-side -f -", provider, provider))
	}
	return terminal
}

// restore reverts the changes of commands to the objects of the hub. kubectl apply would read the schema of the whole
// API first, each time.
func (s *terminal) restore(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	manifests, err := os.ReadFile(filepath.Join(s.folder, "hub.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := yaml.ToUnstructured(manifests)
	g.Expect(err).NotTo(HaveOccurred())
	for _, wanted := range objects {
		now := wanted.DeepCopy()
		err := s.hub.Client().Get(t.Context(), client.ObjectKeyFromObject(now), now)
		if apierrors.IsNotFound(err) {
			g.Expect(s.hub.Client().Create(t.Context(), &wanted)).To(Succeed())
			continue
		}
		g.Expect(err).NotTo(HaveOccurred())
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(asJSON(t, &wanted), asJSON(t, &wanted), asJSON(t, now))
		g.Expect(err).NotTo(HaveOccurred())
		if string(patch) != "{}" {
			g.Expect(s.hub.Client().Patch(t.Context(), now, client.RawPatch(types.MergePatchType, patch))).To(Succeed(), "%s: %s",
				now.GetName(), patch)
		}
	}
}

func asJSON(t *testing.T, object *unstructured.Unstructured) []byte {
	t.Helper()
	content, err := object.MarshalJSON()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return content
}

// run runs what must succeed.
func (s *terminal) run(t *testing.T, script string) {
	t.Helper()
	out, err := s.try(t, script)
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s\n%s", script, out)
}

// try runs a script and returns what it prints.
func (s *terminal) try(t *testing.T, script string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "timeout", fmt.Sprint(patience.Seconds()), "bash", "-c", script)
	cmd.Dir, cmd.Env = s.folder, s.env
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", script, out)
	return string(out), err
}
