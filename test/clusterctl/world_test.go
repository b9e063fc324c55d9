package clusterctl

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// first is the version of a release without predecessor.
const first = "v0.1.0"

// registry is the registry in the image names of our releases, which does not exist.
const registry = "registry.example.com/openshift-agent"

// repository is the repository of our releases on GitHub.
const repository = "openshift-agent/cluster-api-provider-openshift-agent"

// controlPlaneLabel is the name of the control plane provider with its type.
const controlPlaneLabel = "control-plane-openshift-agent"

// world is a user with clusterctl and an empty hub.
type world struct {
	*testing.T
	lab         *lab.Lab
	builder     *components.Builder
	deployments *env.Deployments
	gitHub      *gitHub
	// program is clusterctl. folder is the current folder of the user, and env are the variables of the user.
	program, folder string
	env             []string
	images          map[string]env.Image
	// before and after are the versions of our previous and new release; the new one is of this checkout.
	before, after string
	// source is the checkout of the previous release.
	source *components.Builder
	// begin is when the managers got the rights that they have now.
	begin time.Time
}

// newWorld writes the releases and starts a hub that runs the installed Deployments.
func newWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{T: t, gitHub: startGitHub(t), images: map[string]env.Image{}}
	var err error
	w.builder, err = components.NewBuilder(".", os.Stdout)
	g.Expect(err).NotTo(HaveOccurred())
	dir := filepath.Join(w.builder.Root(), "_artifacts", "clusterctl")
	g.Expect(os.RemoveAll(dir)).To(Succeed())
	w.lab, err = lab.New(t.Context(), lab.Options{Dir: dir, NoManagers: true, LeaveSignals: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.lab.Stop)
	w.applyAll(filepath.Join("testdata", "cert-manager.yaml"), "")
	w.publishForeign(components.Core(""), env.Core, "kubernetes-sigs/cluster-api", "core-components.yaml")
	w.publishForeign(components.Metal3, env.Metal3, "metal3-io/cluster-api-provider-metal3", "infrastructure-components.yaml")
	w.publishAddressManager()
	w.findBefore()
	w.publish(w.source, w.before)
	w.openTerminal()
	w.build(w.source, w.before)
	w.build(w.builder, w.after)
	w.deployments = w.lab.Env.RunDeployments(w.images)
	t.Cleanup(w.deployments.Stop)
	return w
}

// findBefore finds the previous release. Without history it is this checkout with another version.
func (w *world) findBefore() {
	w.Helper()
	g := NewWithT(w)
	var err error
	w.source, w.before, err = w.builder.Before(w.Context())
	if errors.Is(err, components.ErrNoHistory) {
		w.source, w.before = w.builder, first
		w.Run("the previous release is an older commit", func(t *testing.T) {
			t.Skipf("the upgrade is between two releases of this checkout that differ only in their versions: %v", err)
		})
	} else {
		g.Expect(err).NotTo(HaveOccurred())
	}
	next, err := semver.ParseTolerant(w.before)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next.IncrementPatch()).To(Succeed())
	w.after = "v" + next.FinalizeVersion()
}

// publish publishes the release of a checkout on GitHub, like its maintainers.
func (w *world) publish(source *components.Builder, version string) {
	w.Helper()
	assets := w.gitHub.release(repository, version)
	cmd := exec.CommandContext(w.Context(), "make", "release", "VERSION="+version, "REGISTRY="+registry, "PLUGINS=false",
		"OUT="+filepath.Join(w.TempDir(), "out"), "ASSETS="+assets)
	cmd.Dir = source.Root()
	written, err := cmd.CombinedOutput()
	NewWithT(w).Expect(err).NotTo(HaveOccurred(), string(written))
}

// build builds the images of a release of a checkout.
func (w *world) build(source *components.Builder, version string) {
	w.Helper()
	args := map[string][]string{env.ControlPlane: {
		"--ocp-release-repository=" + w.lab.Registry.OCPRepository(),
		"--okd-release-repository=" + w.lab.Registry.OKDRepository(),
	}}
	for name, image := range map[string]string{env.Bootstrap: "agent-bootstrap-provider", env.ControlPlane: "agent-control-plane-provider"} {
		program, err := source.ReleasedManager(w.Context(), name, version)
		NewWithT(w).Expect(err).NotTo(HaveOccurred())
		w.images[registry+"/"+image+":"+version] = env.Image{Name: name, Program: program, ExtraArgs: args[name]}
	}
}

// publishForeign publishes the release of a foreign provider in its repository on GitHub.
func (w *world) publishForeign(component components.Component, name, repository, file string) {
	w.Helper()
	g := NewWithT(w)
	release, err := w.builder.Release(w.Context(), component)
	g.Expect(err).NotTo(HaveOccurred())
	program, err := w.builder.Program(w.Context(), component)
	g.Expect(err).NotTo(HaveOccurred())
	w.images[imageOf(w.T, release.Components)] = env.Image{Name: name, Program: program}
	w.writeRelease(w.gitHub.release(repository, release.Version),
		map[string][]byte{file: release.Components, "metadata.yaml": release.Metadata})
}

// writeRelease writes the files of a release.
func (w *world) writeRelease(folder string, files map[string][]byte) {
	w.Helper()
	NewWithT(w).Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	for name, content := range files {
		NewWithT(w).Expect(os.WriteFile(filepath.Join(folder, name), content, 0o600)).To(Succeed())
	}
}

// publishAddressManager publishes the release of Metal3's IP address manager. CAPM3 does not start without its CRDs,
// which CAPM3's release does not contain. They are removed from the hub so that clusterctl installs them. No object uses
// the kinds, so the manager does not run.
func (w *world) publishAddressManager() {
	w.Helper()
	g := NewWithT(w)
	dir, err := w.builder.ModuleDir(w.Context(), filepath.Join("test", "tools", "ipam"), "github.com/metal3-io/ip-address-manager")
	g.Expect(err).NotTo(HaveOccurred())
	metadata, err := os.ReadFile(filepath.Join(dir, "metadata.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	kinds := &unstructured.UnstructuredList{}
	kinds.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	g.Expect(w.lab.Client().List(w.Context(), kinds)).To(Succeed())
	components := []unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "metal3-ipam-system"},
	}}}
	for i := range kinds.Items {
		if crd := &kinds.Items[i]; strings.HasSuffix(crd.GetName(), ".ipam.metal3.io") {
			g.Expect(w.lab.Client().Delete(w.Context(), crd)).To(Succeed())
			g.Eventually(w.lab.Client().Get).WithArguments(w.Context(), client.ObjectKeyFromObject(crd),
				crd.DeepCopy()).WithTimeout(soon).Should(MatchError(apierrors.IsNotFound, "gone"))
			withoutState(crd)
			crd.SetUID("")
			components = append(components, *crd)
		}
	}
	g.Expect(len(components)).To(BeNumerically(">", 3))
	content, err := yaml.FromUnstructured(components)
	g.Expect(err).NotTo(HaveOccurred())
	_, version, _ := strings.Cut(filepath.Base(dir), "@")
	w.writeRelease(w.gitHub.release("metal3-io/ip-address-manager", version),
		map[string][]byte{"ipam-components.yaml": content, "metadata.yaml": metadata})
}

// imageOf returns the image of the Deployment in the components of a provider.
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
	t.Fatal("the components have no Deployment")
	return ""
}

// applyAll applies the objects of a file, in a namespace if they are namespaced.
func (w *world) applyAll(file, namespace string) {
	w.Helper()
	w.apply(NewWithT(w), file, namespace)
}

// apply is applyAll for a caller that retries.
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

// openTerminal gives the user an empty folder and home, with kubectl and clusterctl. Servers on the internet are those of
// the simulated GitHub.
func (w *world) openTerminal() {
	w.Helper()
	programs, home := w.TempDir(), w.TempDir()
	for name, component := range map[string]components.Component{
		"kubectl": components.Kubectl, "oc": components.Kubectl,
		"clusterctl": components.Clusterctl,
	} {
		program, err := w.builder.Program(w.Context(), component)
		NewWithT(w).Expect(err).NotTo(HaveOccurred())
		NewWithT(w).Expect(os.Symlink(program, filepath.Join(programs, name))).To(Succeed())
	}
	w.program, w.folder = filepath.Join(programs, "clusterctl"), w.TempDir()
	w.env = append(os.Environ(), w.gitHub.env...)
	w.env = append(w.env, "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"),
		"KUBECONFIG="+w.lab.Env.Kubeconfig(), "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
}

// clusterctl runs clusterctl with additional variables, and returns its output.
func (w *world) clusterctl(variables map[string]string, args ...string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), w.program, args...)
	cmd.Dir, cmd.Env = w.folder, slices.Clone(w.env)
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	NewWithT(w).Expect(errors.Join(err, w.failure())).NotTo(HaveOccurred(), "clusterctl %s\n%s", strings.Join(args, " "), stderr.String())
	return string(out)
}

// failure returns the error with which a part of the lab ended.
func (w *world) failure() error {
	var deployments error
	if w.deployments != nil {
		deployments = w.deployments.Failure()
	}
	return errors.Join(deployments, w.lab.Failure())
}

// metrics returns the metrics of one of our managers.
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
