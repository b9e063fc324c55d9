package config_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// withDefault matches a variable that clusterctl replaces, with the default that it takes when the user gives no value.
var withDefault = regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`)

// What clusterctl asks of the components of a provider.
func TestComponentsKeepTheContract(t *testing.T) {
	for provider, names := range map[string]struct{ namespace, label string }{
		"bootstrap":    {"openshift-agent-bootstrap-system", "bootstrap-openshift-agent"},
		"controlplane": {"openshift-agent-control-plane-system", "control-plane-openshift-agent"},
	} {
		t.Run(provider, func(t *testing.T) {
			kinds := map[string]int{}
			for _, object := range components(t, provider+"/default") {
				kind := object["kind"].(string)
				kinds[kind]++
				metadata := object["metadata"].(map[string]any)
				if labels, _ := metadata["labels"].(map[string]any); labels["cluster.x-k8s.io/provider"] != names.label {
					t.Errorf("%s %s: label cluster.x-k8s.io/provider must be %s", kind, metadata["name"], names.label)
				}
				if namespace, ok := metadata["namespace"]; ok && namespace != names.namespace {
					t.Errorf("%s %s is in namespace %s", kind, metadata["name"], namespace)
				}
				switch kind {
				case "Namespace":
					if metadata["name"] != names.namespace {
						t.Errorf("the namespace must be %s, not %s", names.namespace, metadata["name"])
					}
				case "Deployment":
					checkDeployment(t, object)
				case "ClusterRole":
					checkClusterRole(t, object)
				}
			}
			for kind, wanted := range map[string]int{"Namespace": 1, "Deployment": 1, "CustomResourceDefinition": 2, "ServiceAccount": 1} {
				if kinds[kind] != wanted {
					t.Errorf("%d of kind %s, wanted %d", kinds[kind], kind, wanted)
				}
			}
		})
	}
}

// components renders what is installed, with the defaults of its variables, and the watched namespace for managers that watch only one.
func components(t *testing.T, folder string) []map[string]any {
	t.Helper()
	dir, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "kustomize", "build", dir)
	cmd.Dir = "../test/tools/manifests"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	rendered, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot render %s: %v: %s", dir, err, stderr.String())
	}
	rendered = withDefault.ReplaceAll(rendered, []byte("$1"))
	rendered = bytes.ReplaceAll(rendered, []byte("${WATCHED_NAMESPACE}"), []byte(watched))
	if at := bytes.Index(rendered, []byte("${")); at >= 0 {
		t.Errorf("clusterctl would ask for a variable at %q", rendered[at:min(len(rendered), at+40)])
	}
	objects, err := readManifests(bytes.NewReader(rendered))
	if err != nil {
		t.Fatalf("cannot read what %s renders: %v", dir, err)
	}
	return objects
}

func checkDeployment(t *testing.T, object map[string]any) {
	t.Helper()
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &deployment, true); err != nil {
		t.Fatalf("not a valid Deployment: %v", err)
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if len(pod.Containers) != 1 || container.Name != "manager" {
		t.Error("clusterctl looks for the one container manager")
	}
	if args := strings.Join(container.Args, " "); strings.Contains(args, "${") || !strings.Contains(args, "--diagnostics-address=:8443") {
		t.Errorf("arguments with the defaults of their variables: %s", args)
	}
	security := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || pod.SecurityContext.SeccompProfile == nil {
		t.Error("the manager must run without privileges")
	}
}

func checkClusterRole(t *testing.T, object map[string]any) {
	t.Helper()
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &role); err != nil {
		t.Fatalf("not a valid ClusterRole: %v", err)
	}
	for _, rule := range role.Rules {
		if text := fmt.Sprint(rule.APIGroups, rule.Verbs); strings.Contains(text, "*") {
			t.Errorf("%s: a wildcard grants what is not needed: %s", role.Name, text)
		}
	}
}

// clusterctl refuses a provider whose metadata.yaml does not name the contract of its release series.
func TestMetadataNamesTheContract(t *testing.T) {
	content, err := os.ReadFile("../metadata.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct {
		APIVersion, Kind string
		ReleaseSeries    []struct {
			Major, Minor int
			Contract     string
		}
	}
	if err := yaml.UnmarshalStrict(content, &metadata); err != nil {
		t.Fatal(err)
	}
	if metadata.APIVersion != "clusterctl.cluster.x-k8s.io/v1alpha3" || metadata.Kind != "Metadata" || len(metadata.ReleaseSeries) == 0 {
		t.Errorf("not what clusterctl reads: %+v", metadata)
	}
	for _, series := range metadata.ReleaseSeries {
		if series.Contract != "v1beta2" {
			t.Errorf("series %d.%d: the CRDs keep contract v1beta2, not %s", series.Major, series.Minor, series.Contract)
		}
	}
}
