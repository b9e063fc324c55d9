package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/release/archive"
)

// manifest is a file that users apply in addition to the components, built from a folder with kustomize.
type manifest struct {
	// folder is the folder in config/.
	folder string
	// usage is the first line of the file.
	usage string
}

// manifests are the manifests at the top of a release, by file name.
var manifests = map[string]manifest{
	"monitoring.yaml": {"monitoring", "PodMonitors, alerts, dashboards, NetworkPolicies and the configuration of kube-state-metrics: " +
		"kubectl apply -f"},
	"egress.yaml":        {"egress", "NetworkPolicies that restrict the connections of the managers: kubectl apply -f"},
	"argocd-health.yaml": {"argocd/health", "Health checks of Argo CD: kubectl apply --server-side --force-conflicts --namespace argocd -f"},
	"argocd-health-openshift-gitops.yaml": {"argocd/openshift-gitops", "Health checks of OpenShift GitOps, which replace the list " +
		"spec.resourceHealthChecks: kubectl apply --server-side --force-conflicts -f"},
	"siteconfig.yaml": {"siteconfig", "Templates and rights of the siteconfig operator in namespace open-cluster-management: " +
		"kubectl apply -f"},
}

// samplesFile is the archive with the samples, and samples are the patterns of its files in config/ by their folder in
// the archive.
const samplesFile = "samples.tar.gz"

var samples = map[string]string{
	"samples":            "samples/*.yaml",
	"samples/siteconfig": "siteconfig/samples/*.yaml",
	"samples/argocd":     "argocd/application.yaml",
}

// commonFiles returns the files of a release that belong to both providers, by name.
func (r *release) commonFiles(ctx context.Context) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, m := range manifests {
		content, err := r.kustomize(ctx, m.folder)
		if err != nil {
			return nil, err
		}
		files[name] = append([]byte("# "+r.version+": "+m.usage+" "+name+"\n"), content...)
	}
	var err error
	files[samplesFile], err = r.packSamples()
	return files, err
}

// packSamples returns the archive with the samples. Equal samples give equal bytes.
func (r *release) packSamples() ([]byte, error) {
	files := map[string]archive.File{}
	for folder, pattern := range samples {
		paths, err := filepath.Glob(filepath.Join(r.root, "config", pattern))
		if err != nil || len(paths) == 0 {
			return nil, errors.Join(fmt.Errorf("no sample matches config/%s", pattern), err)
		}
		for _, file := range paths {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("cannot read a sample: %w", err)
			}
			files[path.Join(folder, filepath.Base(file))] = archive.File{Content: content, Mode: 0o644}
		}
	}
	return archive.Pack(files)
}

// kustomize builds a folder in config/.
func (r *release) kustomize(ctx context.Context, folder string) ([]byte, error) {
	dir, err := filepath.Abs(filepath.Join(r.root, "config", filepath.FromSlash(folder)))
	if err != nil {
		return nil, fmt.Errorf("cannot find the manifests: %w", err)
	}
	built, err := goCommand(ctx, filepath.Join(r.root, "test", "tools", "manifests"), nil, "tool", "kustomize", "build", dir)
	if err != nil {
		return nil, fmt.Errorf("config/%s: %w", folder, err)
	}
	return built, nil
}
