package config

import (
	"errors"
	"strings"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
)

// identified is a scope whose host is identified.
func identified() *scope {
	return &scope{Facts: &facts.Facts{
		Config:       &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m"}},
		Machine:      &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}},
		Deployment:   &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cp"}},
		InfraMachine: metal3Machine("live-iso"),
		Host:         bareMetalHost(),
	}, findings: findings{agent: discovered("a", "m", bootMAC)}}
}

func withoutHost(s *scope) {
	s.Host = nil
	s.InfraMachine = &unstructured.Unstructured{Object: map[string]any{"kind": "MetalStackMachine", "spec": map[string]any{"providerID": "metalstack://p/1"}}}
}

func TestWish(t *testing.T) {
	metadata := func() ([]byte, error) { return []byte("name: node-7\nrack: r1\n"), nil }
	for name, tc := range map[string]struct {
		change func(s *scope)
		check  func(w *agentWish) bool
	}{
		"Metal3": {func(*scope) {}, func(w *agentWish) bool {
			return w.hostname == "rack1-u7" && w.role == "master" && w.nodeLabels["metal3.io/uuid"] == "bmh-uid" && w.diskID == "" && w.clusterName == "cp"
		}},
		"a worker": {func(s *scope) { s.Machine.Labels = nil }, func(w *agentWish) bool { return w.role == "worker" }},
		"variables are resolved here": {func(s *scope) {
			s.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{
				Name: "$METADATA_NAME", KubeletExtraLabels: []string{`metal3.io/uuid="${METADATA_UUID}"`, "rack=$METADATA_RACK"},
			}
		}, func(w *agentWish) bool {
			return w.hostname == "node-7" && w.nodeLabels["rack"] == "r1" && w.nodeLabels["metal3.io/uuid"] == "bmh-uid" && !strings.Contains(w.ignitionOverride, "METADATA")
		}},
		"no BareMetalHost: the name that the host reports": {withoutHost, func(w *agentWish) bool {
			return w.hostname == "m2" && len(w.nodeLabels) == 0
		}},
		"no BareMetalHost, localhost: the Machine's name": {func(s *scope) {
			withoutHost(s)
			s.agent.Status.Inventory.Hostname = "localhost.localdomain"
		}, func(w *agentWish) bool { return w.hostname == "m" }},
		"root device hints": {func(s *scope) {
			s.Host.Spec.RootDeviceHints = &metal3api.RootDeviceHints{DeviceName: "/dev/sda"}
		}, func(w *agentWish) bool { return w.diskID == "/dev/disk/by-id/wwn-0x525400000002" }},
		"kernel arguments": {func(s *scope) {
			s.Config.Spec.KernelArguments = []bootstrapv1.KernelArgument{{Operation: "append", Value: "a=b"}, {Operation: "delete", Value: "quiet"}}
		}, func(w *agentWish) bool { return w.installerArgs == `["--append-karg","a=b","--delete-karg","quiet"]` }},
		"requirements that are met": {func(s *scope) {
			s.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 16, MinMemory: ptr.To(resource.MustParse("32Gi")), MinDiskSize: ptr.To(resource.MustParse("120Gi"))}
		}, func(w *agentWish) bool { return w.diskID != "" }},
		"requirements that grew after the host was bound: it keeps its disk and stays": {func(s *scope) {
			s.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 32, MinDiskSize: ptr.To(resource.MustParse("1Ti"))}
			s.agent.Spec = aiv1beta1.AgentSpec{
				ClusterDeploymentName: &aiv1beta1.ClusterReference{Namespace: namespace, Name: "cp"}, IgnitionConfigOverrides: "{}", InstallationDiskID: "chosen",
			}
		}, func(w *agentWish) bool { return w.diskID == "chosen" }},
	} {
		t.Run(name, func(t *testing.T) {
			s := identified()
			tc.change(s)
			w, err := s.wish(metadata)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := s.wish(metadata)
			if !tc.check(w) || again.ignitionOverride != w.ignitionOverride {
				t.Errorf("got %+v", w)
			}
		})
	}
}

func TestWishProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		change          func(s *scope)
		reason, message string
	}{
		"unknown variable": {func(s *scope) {
			s.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{Name: "$METADATA_RACK"}
		}, bootstrapv1.InvalidConfigurationReason, "$METADATA_RACK"},
		"variable that is no label value": {func(s *scope) {
			s.Config.Spec.NodeRegistration = &bootstrapv1.NodeRegistration{KubeletExtraLabels: []string{"a=$METADATA_SPACE"}}
		}, bootstrapv1.InvalidConfigurationReason, "cannot be the value of a label"},
		"hostname that is none": {func(s *scope) { s.Host.Name = "Rack_1" }, bootstrapv1.InvalidConfigurationReason, "spec.nodeRegistration.name"},
		"no disk fits":          {func(s *scope) { s.Host.Spec.RootDeviceHints = &metal3api.RootDeviceHints{SerialNumber: "x"} }, bootstrapv1.InstallationDiskNotFoundReason, "/dev/sda"},
		"broken override":       {func(s *scope) { s.Config.Annotations = map[string]string{bootstrapv1.IgnitionOverrideAnnotation: "{"} }, bootstrapv1.InvalidConfigurationReason, bootstrapv1.IgnitionOverrideAnnotation},
		"everything too small": {func(s *scope) {
			s.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 32, MinMemory: ptr.To(resource.MustParse("64Gi")), MinDiskSize: ptr.To(resource.MustParse("1Ti"))}
		}, bootstrapv1.HostBelowRequirementsReason, "it has 16 CPU cores, not 32; it has 32768 MiB of usable memory, not 64Gi; no disk"},
		"too small, and bound by somebody else": {func(s *scope) {
			s.Config.Spec.HostRequirements = &bootstrapv1.HostRequirements{MinCPUCores: 32}
			s.agent.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "cp"}
		}, bootstrapv1.HostBelowRequirementsReason, "it has 16 CPU cores"},
	} {
		t.Run(name, func(t *testing.T) {
			s := identified()
			tc.change(s)
			_, err := s.wish(func() ([]byte, error) { return []byte("space: a b"), nil })
			var p *problem
			if !errors.As(err, &p) || p.reason != tc.reason || !strings.Contains(p.message, tc.message) {
				t.Errorf("got %v", err)
			}
		})
	}
}
