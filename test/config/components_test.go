package config_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// withDefault matches a variable of clusterctl with the default for users who set no value.
var withDefault = regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`)

// unset matches a variable that has no value. Variables that begin with two underscores are those of Grafana.
var unset = regexp.MustCompile(`\$\{([^_]|_[^_]).{0,40}`)

// These are the requirements of clusterctl for the components of a provider.
func TestComponentsKeepTheContract(t *testing.T) {
	for provider, names := range map[string]struct{ namespace, label string }{
		"bootstrap":    {"openshift-agent-bootstrap-system", "bootstrap-openshift-agent"},
		"controlplane": {"openshift-agent-control-plane-system", "control-plane-openshift-agent"},
	} {
		t.Run(provider, func(t *testing.T) {
			g := NewWithT(t)
			kinds := map[string]int{}
			for _, object := range components(t, provider+"/default") {
				kind := object["kind"].(string)
				kinds[kind]++
				metadata := object["metadata"].(map[string]any)
				g.Expect(metadata).To(HaveKeyWithValue("labels", HaveKeyWithValue("cluster.x-k8s.io/provider", names.label)),
					"%s %s", kind, metadata["name"])
				if namespace, ok := metadata["namespace"]; ok {
					g.Expect(namespace).To(Equal(names.namespace), "%s %s", kind, metadata["name"])
				}
				switch kind {
				case "Namespace":
					g.Expect(metadata).To(HaveKeyWithValue("name", names.namespace))
				case "Deployment":
					checkDeployment(t, object)
				case "ClusterRole":
					checkClusterRole(t, object)
				}
			}
			for kind, wanted := range map[string]int{"Namespace": 1, "Deployment": 1, "CustomResourceDefinition": 2, "ServiceAccount": 1} {
				g.Expect(kinds).To(HaveKeyWithValue(kind, wanted))
			}
		})
	}
}

// components renders the components with the defaults of their variables. The watched namespace is set for
// managers that watch only one.
func components(t *testing.T, folder string) []map[string]any {
	t.Helper()
	g := NewWithT(t)
	dir, err := filepath.Abs(filepath.Join("../../config", folder))
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(t.Context(), "go", "tool", "kustomize", "build", dir)
	cmd.Dir = "../tools/manifests"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	rendered, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred(), stderr.String())
	rendered = withDefault.ReplaceAll(rendered, []byte("$1"))
	rendered = bytes.ReplaceAll(rendered, []byte("${WATCHED_NAMESPACE}"), []byte(watched))
	g.Expect(unset.FindString(string(rendered))).To(BeEmpty(), "clusterctl would require this variable")
	objects, err := readManifests(bytes.NewReader(rendered))
	g.Expect(err).NotTo(HaveOccurred())
	return objects
}

func checkDeployment(t *testing.T, object map[string]any) {
	t.Helper()
	g := NewWithT(t)
	var deployment appsv1.Deployment
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &deployment, true)).To(Succeed())
	pod := deployment.Spec.Template.Spec
	g.Expect(pod.Containers).To(ConsistOf(HaveField("Name", "manager")), "clusterctl requires this name")
	container := pod.Containers[0]
	g.Expect(container.Args).To(ContainElement("--diagnostics-address=:8443"), "arguments have the defaults of their variables")
	g.Expect(container.Args).NotTo(ContainElement(ContainSubstring("${")))
	g.Expect(container.Resources.Limits.Memory().String()).To(Equal("1Gi"))
	g.Expect(container.Resources.Requests.Cpu().String()).To(Equal("250m"))
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		g.Expect(probe.TimeoutSeconds).To(BeEquivalentTo(5), "a busy node answers late")
	}
	g.Expect(container.Args).NotTo(ContainElement(HavePrefix("--leader-elect-")), "the defaults are those of OpenShift's operators")
	security := container.SecurityContext
	g.Expect(pod.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
	g.Expect(pod.SecurityContext.SeccompProfile).NotTo(BeNil())
	g.Expect(security.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
	g.Expect(security.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
}

func checkClusterRole(t *testing.T, object map[string]any) {
	t.Helper()
	g := NewWithT(t)
	var role rbacv1.ClusterRole
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object, &role)).To(Succeed())
	for _, rule := range role.Rules {
		g.Expect(fmt.Sprint(rule.APIGroups, rule.Verbs)).NotTo(ContainSubstring("*"), "%s: a wildcard grants unneeded rights", role.Name)
	}
}

// clusterctl rejects a provider whose metadata.yaml does not name the contract of its release series.
func TestMetadataNamesContract(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../metadata.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var metadata struct {
		APIVersion, Kind string
		ReleaseSeries    []struct {
			Major, Minor int
			Contract     string
		}
	}
	g.Expect(yaml.UnmarshalStrict(content, &metadata)).To(Succeed())
	g.Expect(metadata.APIVersion).To(Equal("clusterctl.cluster.x-k8s.io/v1alpha3"))
	g.Expect(metadata.Kind).To(Equal("Metadata"))
	g.Expect(metadata.ReleaseSeries).NotTo(BeEmpty())
	g.Expect(metadata.ReleaseSeries).To(HaveEach(HaveField("Contract", "v1beta2")), "the contract that the CRDs keep")
}
