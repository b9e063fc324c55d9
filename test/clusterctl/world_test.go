package clusterctl

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-api/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The releases: what is upgraded, and to what.
const (
	before = "v0.1.0"
	after  = "v0.1.1"
)

// registry is where the images of our releases would lie.
const registry = "registry.example.com/openshift-agent"

// controlPlaneLabel is the folder of the control plane provider in a repository, which has the cluster templates, too.
const controlPlaneLabel = "control-plane-openshift-agent"

// world is a user with clusterctl, and a hub on which nothing is installed yet.
type world struct {
	*testing.T
	lab         *lab.Lab
	builder     *components.Builder
	deployments *env.Deployments
	// program is clusterctl, repository the folder with the releases, config tells clusterctl of it.
	program, repository, config string
	images                      map[string]env.Image
	providers                   []map[string]string
	// core and metal3 are the versions of what is not ours.
	core, metal3 string
}

// newWorld writes the releases, and starts a hub that runs what is installed from them.
func newWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{T: t, repository: t.TempDir(), images: map[string]env.Image{}}
	var err error
	w.builder, err = components.NewBuilder(".", os.Stdout)
	g.Expect(err).NotTo(HaveOccurred())
	w.program, err = w.builder.Program(t.Context(), components.Clusterctl)
	g.Expect(err).NotTo(HaveOccurred())
	dir := filepath.Join(w.builder.Root(), "_artifacts", "clusterctl")
	g.Expect(os.RemoveAll(dir)).To(Succeed())
	w.lab, err = lab.New(t.Context(), lab.Options{Dir: dir, NoManagers: true, LeaveSignals: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.lab.Stop)
	w.applyAll(filepath.Join("testdata", "cert-manager.yaml"), "")
	w.core = w.publishForeign(components.Core(""), env.Core, "CoreProvider", "cluster-api", "cluster-api/%s/core-components.yaml")
	w.metal3 = w.publishForeign(components.Metal3, env.Metal3, "InfrastructureProvider", "metal3", "infrastructure-metal3/%s/infrastructure-components.yaml")
	w.publish(before)
	w.providers = append(w.providers,
		map[string]string{"name": "openshift-agent", "type": "BootstrapProvider", "url": "file://" + filepath.Join(w.repository, "bootstrap-openshift-agent", before, "bootstrap-components.yaml")},
		map[string]string{"name": "openshift-agent", "type": "ControlPlaneProvider", "url": "file://" + filepath.Join(w.repository, controlPlaneLabel, before, "control-plane-components.yaml")},
	)
	content, err := sigsyaml.Marshal(map[string]any{"providers": w.providers})
	g.Expect(err).NotTo(HaveOccurred())
	w.config = filepath.Join(w.repository, "clusterctl.yaml")
	g.Expect(os.WriteFile(w.config, content, 0o600)).To(Succeed())
	w.build(before)
	w.build(after)
	w.deployments = w.lab.Env.RunDeployments(w.images)
	t.Cleanup(w.deployments.Stop)
	return w
}

// publish writes a release as its maintainers do, and puts it beside the others.
func (w *world) publish(version string) {
	w.Helper()
	out := filepath.Join(w.TempDir(), "out")
	cmd := exec.CommandContext(w.Context(), "make", "release", "VERSION="+version, "REGISTRY="+registry, "OUT="+out)
	cmd.Dir = w.builder.Root()
	written, err := cmd.CombinedOutput()
	NewWithT(w).Expect(err).NotTo(HaveOccurred(), string(written))
	NewWithT(w).Expect(os.Remove(filepath.Join(out, "SHA256SUMS"))).To(Succeed()) // make has checked them
	NewWithT(w).Expect(os.CopyFS(w.repository, os.DirFS(out))).To(Succeed())
}

// build makes the images that a release names.
func (w *world) build(version string) {
	w.Helper()
	args := map[string][]string{env.ControlPlane: {"--ocp-release-repository=" + w.lab.Registry.OCPRepository(), "--okd-release-repository=" + w.lab.Registry.OKDRepository()}}
	for name, image := range map[string]string{env.Bootstrap: "agent-bootstrap-provider", env.ControlPlane: "agent-control-plane-provider"} {
		program, err := w.builder.ReleasedManager(w.Context(), name, version)
		NewWithT(w).Expect(err).NotTo(HaveOccurred())
		w.images[registry+"/"+image+":"+version] = env.Image{Name: name, Program: program, ExtraArgs: args[name]}
	}
}

// publishForeign writes the release of a provider that is not ours, and returns its version.
func (w *world) publishForeign(component components.Component, name, kind, provider, file string) string {
	w.Helper()
	g := NewWithT(w)
	release, err := w.builder.Release(w.Context(), component)
	g.Expect(err).NotTo(HaveOccurred())
	program, err := w.builder.Program(w.Context(), component)
	g.Expect(err).NotTo(HaveOccurred())
	w.images[imageOf(w.T, release.Components)] = env.Image{Name: name, Program: program}
	path := filepath.Join(w.repository, fmt.Sprintf(file, release.Version))
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, release.Components, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(filepath.Dir(path), "metadata.yaml"), release.Metadata, 0o600)).To(Succeed())
	w.providers = append(w.providers, map[string]string{"name": provider, "type": kind, "url": "file://" + path})
	return release.Version
}

// imageOf is the image of the Deployment among the components of a provider.
func imageOf(t *testing.T, manifests []byte) string {
	t.Helper()
	objects, err := yaml.ToUnstructured(manifests)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		deployment := &appsv1.Deployment{}
		NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment)).To(Succeed())
		return deployment.Spec.Template.Spec.Containers[0].Image
	}
	t.Fatal("no Deployment is among the components")
	return ""
}

// applyAll applies the objects of a file, in a namespace if they have one.
func (w *world) applyAll(file, namespace string) {
	w.Helper()
	w.apply(NewWithT(w), file, namespace)
}

// apply likewise, for a caller that tries until it succeeds.
func (w *world) apply(g Gomega, file, namespace string) {
	w.Helper()
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	objects, err := yaml.ToUnstructured(content)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range objects {
		if namespace != "" {
			objects[i].SetNamespace(namespace)
		}
		g.Expect(w.lab.Apply(w.Context(), &objects[i])).To(Succeed())
	}
}

// clusterctl runs clusterctl as a user without network, with variables, and returns what it prints.
func (w *world) clusterctl(variables map[string]string, args ...string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), w.program, append(args, "--config", w.config, "--kubeconfig", w.lab.Env.Kubeconfig())...)
	cmd.Env = append(os.Environ(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true", "GOPROXY=off", "XDG_CONFIG_HOME="+w.TempDir(), "CLUSTER_TOPOLOGY=true")
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	w.Logf("clusterctl %s\n%s", strings.Join(args, " "), stderr.String())
	NewWithT(w).Expect(errors.Join(err, w.failure())).NotTo(HaveOccurred())
	return string(out)
}

// failure is why the laboratory does not do its part any more.
func (w *world) failure() error {
	var deployments error
	if w.deployments != nil {
		deployments = w.deployments.Failure()
	}
	return errors.Join(deployments, w.lab.Failure())
}

// metrics are those of one of our managers.
func (w *world) metrics(name string) (string, error) {
	running := w.deployments.Process(name)
	if running == nil {
		return "", fmt.Errorf("%s does not run", name)
	}
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, running.MetricsURL, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return string(content), err
}
