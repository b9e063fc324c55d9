package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// checkManifests checks the manifests at the top of release v0.1.0 in a folder.
func checkManifests(t *testing.T, out string) {
	t.Helper()
	// An object of each folder, and the command in the first line.
	for file, wanted := range map[string][]string{
		"monitoring.yaml": {
			"kubectl apply -f monitoring.yaml", "name: bootstrap-metrics-scraper", "kind: PodMonitor", "alert: OpenshiftAgentManagerDown",
			"name: openshift-agent-grafana-dashboard", "name: openshift-agent-kube-state-metrics", "kind: NetworkPolicy",
		},
		"egress.yaml": {"kubectl apply -f egress.yaml", "name: bootstrap-manager-egress", "name: control-plane-manager-egress"},
		"argocd-health.yaml": {
			"kubectl apply --server-side --force-conflicts --namespace argocd -f argocd-health.yaml",
			"resource.customizations.health.metal3.io_BareMetalHost: |", "name: argocd-cm",
		},
		"argocd-health-openshift-gitops.yaml": {
			"kubectl apply --server-side --force-conflicts -f argocd-health-openshift-gitops.yaml", "kind: ArgoCD",
			"kind: OpenshiftAssistedControlPlane",
		},
		"siteconfig.yaml": {
			"kubectl apply -f siteconfig.yaml", "name: cluster-api-cluster-templates-v1", "name: cluster-api-node-templates-v1",
			"name: openshift-agent-siteconfig", "namespace: open-cluster-management",
		},
	} {
		t.Run(file, func(t *testing.T) {
			g := NewWithT(t)
			content, err := os.ReadFile(filepath.Join(out, file))
			g.Expect(err).NotTo(HaveOccurred())
			first, rest, _ := strings.Cut(string(content), "\n")
			g.Expect(first).To(And(HavePrefix("# v0.1.0: "), HaveSuffix(wanted[0])))
			for _, text := range wanted[1:] {
				g.Expect(rest).To(ContainSubstring(text))
			}
			g.Expect(rest).NotTo(MatchRegexp(`\$\{[A-Z]`), "users apply the file without clusterctl")
		})
	}
}

// checkSamples checks that the archive in a release has all samples of the checkout, and nothing else.
func checkSamples(t *testing.T, out string) {
	t.Helper()
	g := NewWithT(t)
	packed := unpackFolder(t, filepath.Join(out, samplesFile), "samples")
	wanted := map[string][]byte{}
	for pattern, folder := range map[string]string{"samples": "", "siteconfig/samples": "siteconfig/", "argocd": "argocd/"} {
		files, err := filepath.Glob(filepath.Join(root, "config", pattern, "*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			wanted[folder+filepath.Base(file)], err = os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	g.Expect(packed).To(Equal(wanted))
	g.Expect(packed).To(And(HaveKey("ha.yaml"), HaveKey("siteconfig/sno.yaml"), HaveKey("argocd/application.yaml")))
}

// download matches the URL of a file of a release on GitHub.
var download = regexp.MustCompile(`/cluster-api-provider-openshift-agent/releases/` +
	`(?:latest/download|download/v[0-9.]+)/([A-Za-z0-9_.-]*[A-Za-z0-9])`)

// checkDownloads checks that the URLs in documents name files of a GitHub release. It also checks that a document has
// the URL of each manifest: users without a checkout have no other source.
func checkDownloads(t *testing.T, assets map[string]string) {
	t.Helper()
	g := NewWithT(t)
	named := map[string]bool{}
	released := slices.Collect(maps.Keys(assets))
	for _, p := range pluginPlatforms { // their build takes minutes: REPRODUCE=1
		released = append(released, krewFile, p.archive("v0.1.0"))
	}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/operations/*.md", "config/chart/*.md"} {
		documents, err := filepath.Glob(filepath.Join(root, pattern))
		g.Expect(err).NotTo(HaveOccurred())
		for _, document := range documents {
			content, err := os.ReadFile(document)
			g.Expect(err).NotTo(HaveOccurred())
			for _, match := range download.FindAllSubmatch(content, -1) {
				named[string(match[1])] = true
				g.Expect(released).To(ContainElement(string(match[1])), "%s downloads it", document)
			}
		}
	}
	for file := range manifests {
		g.Expect(named).To(HaveKey(file), "a document has its URL")
	}
	g.Expect(named).To(HaveKey(samplesFile))
}
