package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var (
	makeTarget = regexp.MustCompile("(?m)(?:^|[`$ ])make ([a-z][a-z0-9-]*)")
	target     = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
)

func TestEveryMakeTargetExists(t *testing.T) {
	makefile := file(t, "Makefile")
	var targets []string
	for _, match := range target.FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, match[1])
	}
	found := 0
	for _, d := range read(t) {
		for _, text := range append(d.Spans(), commands(d)...) {
			for _, match := range makeTarget.FindAllStringSubmatch(text, -1) {
				found++
				if !slices.Contains(targets, match[1]) {
					t.Errorf("%s names `make %s`, but the Makefile has no such target", d.Path, match[1])
				}
			}
		}
	}
	NewWithT(t).Expect(found).To(BeNumerically(">", 20))
}

// foreignFlags are the flags of other programs that inline code may name, with the program.
var foreignFlags = map[string]string{
	"--cloud-provider": "cluster-autoscaler", "--take-ownership": "helm", "--max-node-provision-time": "cluster-autoscaler",
	"--scale-down-unneeded-time": "cluster-autoscaler",
	"--save-partlabel":           "coreos-installer", "--append-karg": "coreos-installer", "--delete-karg": "coreos-installer",
	"--copy-network":                      "coreos-installer",
	"--custom-resource-state-config-file": "kube-state-metrics", "--custom-resource-state-only": "kube-state-metrics",
	"--cascade": "kubectl", "--to-directory": "clusterctl", "--from": "clusterctl", "--ipam": "clusterctl",
	"--flavor": "clusterctl", "--config": "clusterctl", "--control-plane-machine-count": "clusterctl", "--include-crd": "clusterctl",
	"--timeout": "kubectl", "--all": "kubectl",
	"--output": "kubectl plugin", "--since": "kubectl plugin", "--log-bytes": "kubectl plugin",
	"--assisted-service-ca": "kubectl plugin",
	"--architecture":        "kubectl plugin", "--repository": "kubectl plugin", "--registry-ca-file": "kubectl plugin",
	"--pull-secret-file": "kubectl plugin", "--pull-secret": "kubectl plugin",
}

var flagSpan = regexp.MustCompile(`^(--[a-z][a-z0-9-]*)(?:[= ].*)?$`)

func TestEveryFlagExists(t *testing.T) {
	flags := file(t, "docs/flags.md")
	foreign := map[string]bool{}
	for _, d := range read(t) {
		for _, span := range d.Spans() {
			match := flagSpan.FindStringSubmatch(span)
			switch {
			case match == nil:
			case foreignFlags[match[1]] != "":
				foreign[match[1]] = true
			case !regexp.MustCompile(`(?m)^ +(-v, )?` + match[1] + `\b`).MatchString(flags):
				t.Errorf("%s names the flag %s, which no manager has (docs/flags.md): fix it, or name its program in foreignFlags of this test",
					d.Path, match[1])
			}
		}
	}
	NewWithT(t).Expect(foreign).To(HaveLen(len(foreignFlags)), "foreignFlags has some that no document names: remove them")
}

// foreignNames are names that no file of ours has as a whole, with whose they are.
var foreignNames = map[string]string{
	"CanUpdateMachine": "Cluster API", "HealthCheckSucceeded": "Cluster API", "InternalError": "Cluster API",
	"WaitingForPreTerminateHook":         "Cluster API",
	"cluster.x-k8s.io/remediate-machine": "Cluster API", "in-place-updates.internal.cluster.x-k8s.io/update-in-progress": "Cluster API",
	"TopologyDelete": "Cluster API", "topology.cluster.x-k8s.io/deployment-name": "Cluster API",
	"clusterctl.cluster.x-k8s.io/move": "clusterctl", "clusterctl.cluster.x-k8s.io/move-hierarchy": "clusterctl",
	"ContainerCreating": "Kubernetes", "FailedMount": "Kubernetes",
	"ClusterImporter": "Open Cluster Management", "DeploymentsHealthy": "assisted-service",
	"ValidateClusterSupportsArbiterHosts": "assisted-service", "RenderedTemplates": "siteconfig operator",
	"ClusterBootImageSkewError": "machine-config-operator", "WatchListClient": "client-go",
	"WaitingForRelease": "an exercise of CONTRIBUTING.md",
	"pre-terminate.delete.hook.machine.cluster.x-k8s.io/openshift-etcd-member": "ours, after a prefix of Cluster API",
}

var (
	annotationSpan = regexp.MustCompile(`^[a-z0-9.-]+\.(?:x-k8s|openshift|metal3|k8s)\.io/[a-z0-9-]+`)
	// nameSpan matches names as conditions, reasons, Events and kinds have.
	nameSpan = regexp.MustCompile(`^[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+$`)
	word     = regexp.MustCompile(`[A-Za-z0-9]+`)
)

// Conditions, reasons, Events, kinds, labels and annotations are constants or words of a manifest. A name that is in
// none of our files is misspelt or outdated.
func TestEveryNameExists(t *testing.T) {
	sources, words := sources(t)
	foreign := map[string]bool{}
	for _, d := range read(t) {
		if d.Path == "CHANGELOG.md" { // it also describes former names
			continue
		}
		for _, span := range d.Spans() {
			exists := true
			if name := annotationSpan.FindString(span); name != "" {
				span, exists = name, strings.Contains(sources, name)
			} else if nameSpan.MatchString(span) {
				exists = words[span]
			}
			switch {
			case exists:
			case foreignNames[span] != "":
				foreign[span] = true
			default:
				t.Errorf("%s names %s, which is in no Go file and no manifest of the repository: fix it, or state in foreignNames "+
					"of this test whose it is", d.Path, span)
			}
		}
	}
	NewWithT(t).Expect(foreign).To(HaveLen(len(foreignNames)), "foreignNames has some that no document names: remove them")
}

// notSources are the folders with what was built, with the logs of tests, and with recorded objects, which contain names of
// other projects.
var notSources = []string{"_artifacts", "bin", "dist", "node_modules", "out", "recorded"}

// sources are all Go files and manifests of the repository, and the words in them. The files of this package and those
// for foreign kinds are excluded.
func sources(t *testing.T) (text string, words map[string]bool) {
	t.Helper()
	var all strings.Builder
	NewWithT(t).Expect(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || slices.Contains(notSources,
			entry.Name()) || path == filepath.Join(root, "test/docs/commands/testdata")):
			return fs.SkipDir
		case filepath.Dir(path) == filepath.Join(root, "test/docs"): // these contain names that do not exist
		case slices.Contains([]string{".go", ".yaml", ".lua"}, filepath.Ext(path)) && entry.Type().IsRegular():
			content, err := os.ReadFile(path)
			all.Write(content)
			return err
		}
		return nil
	})).To(Succeed())
	words = map[string]bool{}
	for _, w := range word.FindAllString(all.String(), -1) {
		words[w] = true
	}
	return all.String(), words
}

func file(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}
