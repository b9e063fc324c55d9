package informer

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// large contains annotations that no code reads.
var large = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "large"}

func sampleCondition(kind conditionsv1.ConditionType, status corev1.ConditionStatus) conditionsv1.Condition {
	return conditionsv1.Condition{Type: kind, Status: status, Reason: "Reason", Message: "message", LastTransitionTime: metav1.Now()}
}

func TestCachedMachineKeepsReadFields(t *testing.T) {
	kept := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: "m", UID: "1", ResourceVersion: "5", Generation: 2, DeletionTimestamp: ptr.To(metav1.Now()),
			Labels: map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
			Annotations: map[string]string{
				clusterv1.MachineSkipRemediationAnnotation: "x", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/x": "",
			},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", ProviderID: "p", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("s")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "Metal3Machine", Name: "m"},
		},
		Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "n"}, Conditions: []metav1.Condition{
			{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now()},
		}},
	}
	whole := kept.DeepCopy()
	whole.Labels["other"], whole.Annotations["other"], whole.Status.Phase = "x", "x", "Running"
	whole.Status.Conditions = append(whole.Status.Conditions, metav1.Condition{Type: "Other"})
	whole.Status.Conditions[0].Message = "large"
	g := NewWithT(t)
	g.Expect(trimMachine(whole)).To(Equal(kept))

	whole.DeletionTimestamp, kept.DeletionTimestamp = nil, nil
	delete(kept.Annotations, clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/x")
	g.Expect(trimMachine(whole)).To(Equal(kept), "hooks block the deletion only while a Machine is being deleted")

	delete(whole.Labels, clusterv1.MachineControlPlaneLabel)
	delete(kept.Labels, clusterv1.MachineControlPlaneLabel)
	g.Expect(trimMachine(whole)).To(Equal(kept))
}

func TestCachedClusterAndInstallationKeepReadFields(t *testing.T) {
	g := NewWithT(t)
	cluster := &clusterv1.Cluster{
		Spec: clusterv1.ClusterSpec{Paused: ptr.To(true), ControlPlaneRef: clusterv1.ContractVersionedObjectReference{Name: "cp"}},
	}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	whole := cluster.DeepCopy()
	whole.Annotations, whole.Status.Phase = large, "Provisioned"
	g.Expect(trimCluster(whole)).To(Equal(cluster))

	deployment := &hivev1.ClusterDeployment{
		Spec: hivev1.ClusterDeploymentSpec{Installed: true, PullSecretRef: &corev1.LocalObjectReference{Name: "s"}},
	}
	deployment.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	deployment.Annotations = map[string]string{"controlplane.cluster.x-k8s.io/openshift-version": "4.19.3"}
	known := deployment.DeepCopy()
	known.Annotations["other"], known.Spec.BaseDomain = "large", "lab.example"
	g.Expect(trimDeployment(known)).To(Equal(deployment))

	install := &hiveext.AgentClusterInstall{Spec: hiveext.AgentClusterInstallSpec{
		ProvisionRequirements: hiveext.ProvisionRequirements{WorkerAgents: 2},
		MirrorRegistryRef:     &hiveext.MirrorRegistryConfigMapReference{Name: "m"},
	}}
	install.Status.DebugInfo = hiveext.DebugInfo{State: "installed", StateInfo: "done"}
	install.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterCompletedCondition, Status: "True", Reason: "InstallationCompleted"},
	}
	install.Annotations = map[string]string{
		"bootstrap.cluster.x-k8s.io/machine-config-server-ca": "PEM", "bootstrap.cluster.x-k8s.io/installation-given-up": "",
	}
	untrimmed := install.DeepCopy()
	untrimmed.Annotations["other"] = "large"
	untrimmed.Status.DebugInfo.EventsURL, untrimmed.Status.Conditions[0].Message = "large", "large"
	untrimmed.Status.Conditions = append(untrimmed.Status.Conditions, hivev1.ClusterInstallCondition{Type: "Other"})
	g.Expect(trimInstall(untrimmed)).To(Equal(install))
}

func TestCachedInfraEnvKeepsSpec(t *testing.T) {
	g := NewWithT(t)
	infraEnv := &aiv1beta1.InfraEnv{
		ObjectMeta: metav1.ObjectMeta{
			Labels:        map[string]string{"l": "v"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: writer.FieldOwner, Operation: metav1.ManagedFieldsOperationApply}},
		},
		Spec: aiv1beta1.InfraEnvSpec{SSHAuthorizedKey: "key", IgnitionConfigOverride: "{}", NTPSources: []string{"ntp"}},
	}
	infraEnv.Status.ISODownloadURL, infraEnv.Status.BootArtifacts.DiscoveryIgnitionURL = "iso", "ignition"
	infraEnv.Status.InfraEnvDebugInfo.StaticNetworkDownloadURL = "networks"
	infraEnv.Status.Conditions = append(infraEnv.Status.Conditions, sampleCondition(aiv1beta1.ImageCreatedCondition, corev1.ConditionFalse))
	whole := infraEnv.DeepCopy()
	whole.Annotations = large
	g.Expect(trimInfraEnv(whole)).To(Equal(infraEnv))

	network := &aiv1beta1.NMStateConfig{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "v"}}}
	network.Spec.Interfaces = []*aiv1beta1.Interface{{Name: "eno1", MacAddress: sample.BootMAC}}
	stated := network.DeepCopy()
	stated.Annotations, stated.Spec.Config = large, json.RawMessage(`"large"`)
	g.Expect(trimNMStateConfig(stated)).To(Equal(network))
}

func TestCachedHostKeepsReadFields(t *testing.T) {
	kept := sample.BareMetalHost()
	kept.Spec.BMC.Address, kept.Spec.Image = "redfish://bmc", &metal3.Image{URL: "iso"}
	kept.Spec.RootDeviceHints = &metal3api.RootDeviceHints{DeviceName: "/dev/sda"}
	kept.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: sample.BootMAC}, {MAC: "02:00:00:00:00:02"}}}
	kept.Status.HardwareDetails.SystemVendor.SerialNumber = "S1"
	kept.Annotations = map[string]string{
		metal3.HostnameAnnotation:              "h",
		metal3.RoleAnnotation:                  "master",
		metal3.InstallerArgsAnnotation:         "[]",
		metal3.IgnitionAnnotation:              "{}",
		metal3.NodeLabelAnnotationPrefix + "a": "b", metal3.AgentLabelAnnotationPrefix + "a": "b",
		"baremetalhost.metal3.io/paused": "",
	}
	kept.Status.ErrorType, kept.Status.ErrorMessage = "power management error", "no BMC"
	kept.Status.Provisioning.State, kept.Status.PoweredOn = "provisioned", true
	kept.Status.History.Provision.End = "2026-01-01T00:00:00Z"
	kept.Status.Conditions = []metal3.Condition{{Type: "Healthy", Status: "False", Reason: "Warning"}}
	whole := kept.DeepCopy()
	maps.Copy(whole.Annotations, large)
	whole.Labels, whole.OwnerReferences = large, []metav1.OwnerReference{{Name: "m"}}
	whole.Status.HardwareDetails.RAMMebibytes = 1 << 10
	whole.Status.Conditions = append([]metal3.Condition{{Type: "Ready", Status: "False"}}, kept.Status.Conditions...)
	whole.Status.HardwareDetails.NIC = []metal3.NIC{{MAC: sample.BootMAC}, {MAC: sample.BootMAC}, {MAC: "02:00:00:00:00:02"}}
	NewWithT(t).Expect(trimHost(whole)).To(Equal(kept))
	NewWithT(t).Expect(trimHost(kept)).To(Equal(kept), "unchanged by a second trim")
}

// TestCachedFreeHostKeepsSelectionFields: CAPM3 may assign the host to a Metal3Machine.
func TestCachedFreeHostKeepsSelectionFields(t *testing.T) {
	g := NewWithT(t)
	kept, ours := sample.BareMetalHost(), sample.BareMetalHost()
	kept.Spec.ConsumerRef, kept.Labels, kept.Spec.BMC.Address = nil, map[string]string{"zone": "a"}, "redfish://bmc"
	kept.Annotations, kept.Status.Provisioning.State = map[string]string{"baremetalhost.metal3.io/detached": ""}, "available"
	kept.Status.HardwareDetails = &metal3.Hardware{
		SystemVendor: metal3.Vendor{SerialNumber: "S1"},
		NIC:          []metal3.NIC{{MAC: sample.BootMAC}},
		CPU:          metal3.CPU{Count: 8},
		RAMMebibytes: 1 << 10,
		Storage:      []metal3.Disk{{SizeBytes: 2}},
	}
	kept.Status.Conditions = []metal3.Condition{{Type: "Healthy", Status: "False", Reason: "CriticalError"}}
	whole := kept.DeepCopy()
	maps.Copy(whole.Annotations, large)
	whole.Status.Conditions = append(whole.Status.Conditions, metal3.Condition{Type: "Ready", Status: "False"})
	whole.Spec.RootDeviceHints = &metal3api.RootDeviceHints{DeviceName: "/dev/sda"}
	whole.Status.HardwareDetails.NIC = []metal3.NIC{{MAC: sample.BootMAC}, {MAC: sample.BootMAC}}
	whole.Status.HardwareDetails.Storage = []metal3.Disk{{SizeBytes: 1}, {SizeBytes: 2}}
	g.Expect(trimHost(whole)).To(Equal(kept))
	g.Expect(trimHost(kept)).To(Equal(kept), "unchanged by a second trim")

	ours.Generation = 2
	g.Expect(HostChanges.Update(event.UpdateEvent{
		ObjectOld: trimHost(whole), ObjectNew: trimHost(ours),
	})).To(BeTrue(), "the host is assigned to a Machine")
}

// TestCachedHostInUseKeepsIndexedFields: the index of hosts in use is built from the cache.
func TestCachedHostInUseKeepsIndexedFields(t *testing.T) {
	for situation, host := range sample.Claimants() {
		g := NewWithT(t)
		host.Spec.BMC.CredentialsName = "secret"
		g.Expect(metal3.Claim(host)).NotTo(BeEmpty(), situation)
		g.Expect(metal3.Claim(trimHost(host))).To(Equal(metal3.Claim(host)), situation)
		g.Expect(serverInUse(trimHost(host))).To(Equal(metal3.ServerKeys(host)), situation)
		g.Expect(trimHost(trimHost(host))).To(Equal(trimHost(host)), "unchanged by a second trim: %s", situation)
	}
	free := sample.BareMetalHost()
	free.Spec.ConsumerRef, free.Status.Provisioning.State = nil, "available"
	NewWithT(t).Expect(serverInUse(free)).To(BeEmpty(), "a free host is not indexed")
}

// TestCachedReservedHostKeepsLabels: the labels show whether CAPM3 waits for the host.
func TestCachedReservedHostKeepsLabels(t *testing.T) {
	g := NewWithT(t)
	host := sample.BareMetalHost()
	host.Spec.ConsumerRef, host.Spec.BMC.Address = nil, "redfish://bmc"
	host.Labels = map[string]string{metal3.NodeReuseLabel: "md-0", "zone": "a"}
	host.Annotations = map[string]string{metal3.FencingCredentialsAnnotation: "own", metal3.HostnameAnnotation: "r1"}
	for _, state := range []string{"deprovisioning", "available"} {
		host.Status.Provisioning.State = state
		kept := trimHost(host)
		g.Expect(kept.Labels).To(Equal(host.Labels), state)
		g.Expect(metal3.IsExpected(kept, "md-0")).To(Equal(state == "deprovisioning"))
		g.Expect(metal3.UnavailableReason(kept, "md-1")).To(ContainSubstring("reserved for"))
	}
	kept := trimHost(host)
	g.Expect(kept.Spec.BMC.Address).To(Equal("redfish://bmc"), "fencing reads the address")
	g.Expect(kept.Annotations).To(HaveKey(metal3.FencingCredentialsAnnotation))
	g.Expect(kept.Annotations).To(HaveKeyWithValue(metal3.HostnameAnnotation, "r1"), "the validation of the hostname reads the annotation")
}

func TestCachedMetal3MachineKeepsSelectionFields(t *testing.T) {
	g := NewWithT(t)
	machine := sample.Metal3Machine("live-iso")
	machine.SetLabels(map[string]string{clusterv1.MachineDeploymentNameLabel: "0", "other": "x"})
	g.Expect(unstructured.SetNestedField(machine.Object, "rack1", "spec", "failureDomain")).To(Succeed())
	trimmed, err := TrimInfrastructure(machine)
	g.Expect(err).NotTo(HaveOccurred())
	kept, ok := trimmed.(*unstructured.Unstructured)
	g.Expect(ok).To(BeTrue())
	g.Expect(kept.GetLabels()).To(Equal(map[string]string{clusterv1.MachineDeploymentNameLabel: "0"}))
	g.Expect(kept.Object["spec"]).To(HaveKeyWithValue("failureDomain", "rack1"))
}

// TestCachedUnavailableHostKeepsReasonAndIdentity: a hub may have many hosts that were installed in other
// ways.
func TestCachedUnavailableHostKeepsReasonAndIdentity(t *testing.T) {
	g := NewWithT(t)
	provisioned, broken, others := sample.BareMetalHost(), sample.BareMetalHost(), sample.BareMetalHost()
	provisioned.Spec.ConsumerRef, broken.Spec.ConsumerRef, others.Spec.ConsumerRef.Kind = nil, nil, "HostClaim"
	provisioned.Status.Provisioning.State, broken.Status.Provisioning.State = "provisioned", "available"
	broken.Status.ErrorType, broken.Status.ErrorMessage = "registration error", "no BMC"
	for want, host := range map[string]*metal3.Host{"provisioned": provisioned, "registration error: no BMC": broken, "in use": others} {
		host.Spec.BMC.Address, host.Labels = "redfish://bmc", map[string]string{"zone": "a"}
		host.Status.HardwareDetails = &metal3.Hardware{
			NIC: []metal3.NIC{{MAC: sample.BootMAC}}, SystemVendor: metal3.Vendor{SerialNumber: "S1"}, RAMMebibytes: 1 << 10,
		}
		kept := trimHost(host)
		g.Expect(metal3.UnavailableReason(kept, "")).To(Equal(want))
		g.Expect(metal3.IdentityOf(kept).MACs).To(Equal([]string{sample.BootMAC}), "other addresses identify no host")
		g.Expect(kept.Status.HardwareDetails).To(Equal(&metal3.Hardware{
			NIC: []metal3.NIC{{MAC: sample.BootMAC}}, SystemVendor: metal3.Vendor{SerialNumber: "S1"},
		}), want)
		if host == broken {
			g.Expect(kept.Labels).To(Equal(host.Labels), "the host may be assigned to a Machine after the error")
		} else {
			g.Expect(kept.Labels).To(BeEmpty(), want)
		}
		g.Expect(kept.Spec.BMC.Address).To(Equal("redfish://bmc"), "another BareMetalHost may have the same server: %s", want)
	}
}

func TestCachedAgentKeepsReadFields(t *testing.T) {
	g := NewWithT(t)
	ours := metav1.ManagedFieldsEntry{Manager: writer.FieldOwner, Operation: metav1.ManagedFieldsOperationApply}
	service := metav1.ManagedFieldsEntry{Manager: "assisted-service", Operation: metav1.ManagedFieldsOperationUpdate}
	whole := sample.Agent("a", "m", sample.BootMAC)
	whole.Status.Inventory.Interfaces[0].IPV4Addresses = []string{"192.168.1.10/24"}
	whole.Annotations, whole.ManagedFields = map[string]string{
		assisted.SkipSpokeCleanupAnnotation: "", "other": "large",
	}, []metav1.ManagedFieldsEntry{service, ours}
	whole.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Name: "cp"}
	whole.Spec.Role, whole.Spec.IgnitionConfigOverrides = aiv1beta1.HostRoleWorker, "large"
	whole.Status.Role, whole.Status.InstallationDiskID = aiv1beta1.HostRoleWorker, "disk"
	whole.Status.Progress.CurrentStage = aiv1beta1.HostStageJoined
	whole.Status.Progress.StageStartTime, whole.Status.Progress.InstallationPercentage = &metav1.Time{Time: time.Unix(1, 0)}, 88
	whole.Status.DebugInfo.StateInfo, whole.Status.Inventory.SystemVendor.SerialNumber = "info", "S1"
	whole.Status.Inventory.Gpus = []aiv1beta1.HostGPU{{VendorID: "10de"}}
	whole.Status.Conditions = append(
		whole.Status.Conditions,
		sampleCondition("Other", corev1.ConditionTrue),
		sampleCondition(aiv1beta1.InstalledCondition, corev1.ConditionFalse),
	)
	whole.Labels["example.com/rack"] = "r1" // possibly applied by us
	waiting := whole.DeepCopy()
	whole.Labels["inventory.agent-install.openshift.io/cpu-architecture"] = "x86_64"
	waiting.Status.Inventory.Interfaces[0].IPV4Addresses = nil
	waiting.Annotations, waiting.ManagedFields = map[string]string{assisted.SkipSpokeCleanupAnnotation: ""}, []metav1.ManagedFieldsEntry{ours}
	conditions := whole.Status.Conditions
	waiting.Status.Conditions = trimConditions(conditions, readConditions)
	g.Expect(waiting.Status.Conditions).To(HaveLen(3), "the unread condition is left out")
	g.Expect(waiting.Status.Conditions[0].Reason).To(BeEmpty(), "the reason of a true condition is not read")
	g.Expect(waiting.Status.Conditions[1:]).To(ConsistOf(conditions[1], conditions[3]), "false conditions are read completely")
	g.Expect(TrimAgent(whole)).To(Equal(waiting), "without the managed fields every restart would apply the Agent again")

	whole.Spec.Approved = true
	whole.Status.Conditions = nil
	for _, c := range append(readConditions, "Other") {
		whole.Status.Conditions = append(whole.Status.Conditions, sampleCondition(c, corev1.ConditionFalse))
	}
	conditions = whole.Status.Conditions
	approved := waiting.DeepCopy()
	approved.ManagedFields, approved.Labels = nil, map[string]string{aiv1beta1.InfraEnvNameLabel: "m"}
	approved.Status.Role, approved.Status.InstallationDiskID, approved.Status.Conditions = "", "", conditions[2:6]
	approved.Spec.IgnitionConfigOverrides, approved.Spec.Approved = "{}", true
	inventory := &approved.Status.Inventory
	inventory.Hostname, inventory.Disks, inventory.Memory, inventory.Cpu = "", nil, aiv1beta1.HostMemory{}, aiv1beta1.HostCPU{}
	inventory.Gpus = nil
	g.Expect(TrimAgent(whole)).To(Equal(approved), "nothing more is applied")

	for _, state := range []string{"installed", "added-to-existing-cluster"} {
		whole.Status.DebugInfo.State = state
		installed := approved.DeepCopy()
		installed.Status.DebugInfo.State, installed.Status.DebugInfo.StateInfo, installed.Status.Conditions = state, "", conditions[5:6]
		g.Expect(TrimAgent(whole)).To(Equal(installed), "nothing more is applied to an installed Agent")
		g.Expect(TrimAgent(installed)).To(Equal(installed), "unchanged by a second trim")
	}
}

// TestCachedAgentKeepsReadConditions: identify, bind, validation, restore, release or pkg/assisted reads each
// of them.
func TestCachedAgentKeepsReadConditions(t *testing.T) {
	for _, read := range []conditionsv1.ConditionType{
		aiv1beta1.SpecSyncedCondition,
		aiv1beta1.BoundCondition,
		aiv1beta1.ConnectedCondition,
		aiv1beta1.ValidatedCondition,
		aiv1beta1.InstalledCondition,
		aiv1beta1.CleanupCondition,
	} {
		NewWithT(t).Expect(trimConditions([]conditionsv1.Condition{
			sampleCondition(read, corev1.ConditionFalse),
		}, readConditions)).To(HaveLen(1), string(read))
	}
}

// TestCacheStartsWithoutInfrastructure: the options of a cache may name only kinds that the API server serves at the start.
func TestCacheStartsWithoutInfrastructure(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Cached()).NotTo(HaveKey(BeAssignableToTypeOf(&metal3.Host{})))
	g.Expect(Indexes()).NotTo(ContainElement(HaveField("Object", BeAssignableToTypeOf(&metal3.Host{}))))
	whole := sample.BareMetalHost()
	whole.Annotations = large
	g.Expect(TrimInfrastructure(whole)).To(Equal(trimHost(whole)))
	g.Expect(trimHost(whole).Annotations).To(BeEmpty())
}

func TestCachedInfraMachineKeepsReadFields(t *testing.T) {
	g := NewWithT(t)
	kept := sample.Metal3Machine("live-iso")
	unstructured.RemoveNestedField(kept.Object, "spec", "image", "checksum")
	g.Expect(unstructured.SetNestedStringMap(kept.Object, map[string]string{"zone": "a"}, "spec", "hostSelector", "matchLabels")).To(Succeed())
	for _, path := range [][]string{{"spec", "providerID"}, {"spec", "image", "format"}, {"status", "metaData", "name"}} {
		g.Expect(unstructured.SetNestedField(kept.Object, "x", path...)).To(Succeed())
	}
	for _, path := range [][]string{{"status", "ready"}, {"status", "initialization", "provisioned"}} {
		g.Expect(unstructured.SetNestedField(kept.Object, true, path...)).To(Succeed())
	}
	own := []metav1.ManagedFieldsEntry{{Manager: writer.FieldOwner, Operation: metav1.ManagedFieldsOperationApply}}
	kept.SetManagedFields(own)
	whole := kept.DeepCopy()
	whole.SetLabels(large)
	g.Expect(unstructured.SetNestedField(whole.Object, "sum", "spec", "image", "checksum")).To(Succeed())
	g.Expect(TrimInfrastructure(whole)).To(Equal(kept))

	whole.SetAnnotations(map[string]string{"metal3.io/BareMetalHost": "lab/host"})
	kept.SetAnnotations(whole.GetAnnotations())
	unstructured.RemoveNestedField(kept.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(kept.Object, "spec", "hostSelector")
	g.Expect(TrimInfrastructure(whole)).To(Equal(kept), "nothing is applied after the host is chosen")
}

func TestCachedSecretsAndConfigMapsKeepReadFields(t *testing.T) {
	g := NewWithT(t)
	identity := kube.MetadataOf(kube.Secret)
	identity.Namespace, identity.Name, identity.UID, identity.ResourceVersion = "lab", "m", "1", "5"
	whole := identity.DeepCopy()
	whole.Labels, whole.Finalizers = map[string]string{clusterv1.ClusterNameLabel: "c", "other": "large"}, []string{"other"}
	whole.OwnerReferences, whole.ManagedFields = []metav1.OwnerReference{{Name: "m"}, {Name: "other"}},
		[]metav1.ManagedFieldsEntry{{Manager: writer.FieldOwner}}
	whole.Annotations = map[string]string{desired.InfraEnvAnnotation: "id", "other": "large"}
	g.Expect(kube.MetadataIdentity(whole)).To(Equal(identity))
	g.Expect(trimSecret(whole)).To(Equal(identity), "foreign Secret")

	whole.Annotations[desired.SourceAnnotation], whole.Annotations[desired.ModifiedAnnotation] = "digest", "yesterday"
	kept := identity.DeepCopy()
	kept.Labels, kept.OwnerReferences = map[string]string{clusterv1.ClusterNameLabel: "c"}, whole.OwnerReferences
	kept.Annotations = map[string]string{
		desired.SourceAnnotation: "digest", desired.InfraEnvAnnotation: "id", desired.ModifiedAnnotation: "yesterday",
	}
	g.Expect(trimSecret(whole)).To(Equal(kept))
	g.Expect(Cached()).To(HaveKeyWithValue(BeAssignableToTypeOf(&corev1.Secret{}), WithTransform(func(options cache.ByObject) any {
		trimmed, _ := options.Transform(whole)
		return trimmed
	}, Equal(kept))))
}
