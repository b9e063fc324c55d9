package config_test

import (
	"context"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// autoscaled are a Cluster, a MachineDeployment without Machines as the topology controller applies it, and a host.
var autoscaled = []string{
	`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {namespace: default, name: autoscaled}
spec:
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: OpenshiftAssistedControlPlane, name: autoscaled}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3Cluster, name: autoscaled}
`, `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: Metal3MachineTemplate
metadata: {namespace: default, name: autoscaled}
spec:
  template:
    spec:
      image: {url: "http://image", checksum: "http://sum"}
      hostSelector: {matchLabels: {pool: autoscaled}}
`, `
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {namespace: default, name: autoscaled-0, labels: {pool: autoscaled}}
spec: {online: false}
`, `
apiVersion: metal3.io/v1alpha1
kind: HardwareData
metadata: {namespace: default, name: autoscaled-0}
spec: {hardware: {cpu: {count: 64}, ramMebibytes: 65536}}
`, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata:
  namespace: default
  name: autoscaled
  annotations: {controlplane.cluster.x-k8s.io/autoscaling-capacity: from-hardware-data}
spec:
  clusterName: autoscaled
  replicas: 0
  template:
    spec:
      clusterName: autoscaled
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: OpenshiftAssistedConfigTemplate, name: one}}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3MachineTemplate, name: autoscaled}
`,
}

// The annotations that the autoscaler reads, and their record.
const (
	cpu    = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	memory = "capacity.cluster-autoscaler.kubernetes.io/memory"
	record = "controlplane.cluster.x-k8s.io/stated-capacity"
)

// checkCapacity follows the capacity for the cluster autoscaler on a real API server, which decides who owns an
// annotation.
func checkCapacity(ctx context.Context, t *testing.T, e *env.Env) {
	g, c := NewWithT(t), e.Client()
	var deployment *unstructured.Unstructured
	for _, manifest := range autoscaled {
		deployment = &unstructured.Unstructured{Object: object(t, manifest)}
		g.Expect(applyAs(ctx, c, deployment, "capi-topology")).To(Succeed(), manifest)
	}
	stated := func() map[string]string {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		found := deployment.GetAnnotations()
		maps.DeleteFunc(found, func(key, _ string) bool { return key != cpu && key != memory })
		return found
	}
	whole := map[string]string{cpu: "63180m", memory: "58780Mi"}
	g.Eventually(stated, time.Minute).Should(Equal(whole))
	for range 2 {
		topology := &unstructured.Unstructured{Object: object(t, autoscaled[len(autoscaled)-1])}
		g.Expect(applyAs(ctx, c, topology, "capi-topology")).To(Succeed())
		g.Expect(stated()).To(Equal(whole), "the topology controller applies only its own annotations")
	}

	patch(ctx, g, c, "HardwareData", "metal3.io/v1alpha1", "autoscaled-0", `{"spec": {"hardware": {"cpu": {"count": 8}}}}`)
	g.Eventually(stated, time.Minute).Should(HaveKeyWithValue(cpu, "7500m"), "the hardware is watched")
	checkSharedCapacity(ctx, g, c, deployment, stated)
	patch(ctx, g, c, "MachineDeployment", "cluster.x-k8s.io/v1beta2", "autoscaled", `{"metadata": {"annotations": {"`+cpu+`": "4"}}}`)
	patch(ctx, g, c, "HardwareData", "metal3.io/v1alpha1", "autoscaled-0", `{"spec": {"hardware": {"ramMebibytes": 32768}}}`)
	g.Eventually(stated, time.Minute).Should(Equal(map[string]string{cpu: "4", memory: "27548Mi"}), "the user's value counts")
	patch(ctx, g, c, "BareMetalHost", "metal3.io/v1alpha1", "autoscaled-0", `{"metadata": {"labels": {"pool": "other"}}}`)
	g.Eventually(stated, time.Minute).Should(Equal(map[string]string{cpu: "4"}), "no host is selected")

	topology := &unstructured.Unstructured{Object: object(t, autoscaled[len(autoscaled)-1])}
	topology.SetAnnotations(nil)
	g.Expect(applyAs(ctx, c, topology, "capi-topology")).To(Succeed())
	patch(ctx, g, c, "BareMetalHost", "metal3.io/v1alpha1", "autoscaled-0", `{"metadata": {"labels": {"pool": "autoscaled"}}}`)
	g.Consistently(stated, time.Second).Should(Equal(map[string]string{cpu: "4"}), "no longer requested")
}

// checkSharedCapacity has another client apply an export of the MachineDeployment, with the memory and the record. The
// memory is the client's from then on, and the record does not block the CPUs.
func checkSharedCapacity(
	ctx context.Context, g Gomega, c client.Client, deployment *unstructured.Unstructured, stated func() map[string]string,
) {
	inspected := func(hardware string) {
		patch(ctx, g, c, "HardwareData", "metal3.io/v1alpha1", "autoscaled-0", `{"spec": {"hardware": `+hardware+`}}`)
	}
	before := stated()
	exported := &unstructured.Unstructured{}
	exported.SetGroupVersionKind(deployment.GroupVersionKind())
	exported.SetNamespace(watched)
	exported.SetName(deployment.GetName())
	recorded := func() string {
		found := deployment.DeepCopy()
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(found), found)).To(Succeed())
		return found.GetAnnotations()[record]
	}
	exported.SetAnnotations(map[string]string{memory: before[memory], record: recorded()})
	g.Expect(applyAs(ctx, c, exported, "argocd")).To(Succeed())
	inspected(`{"cpu": {"count": 4}, "ramMebibytes": 16384}`)
	g.Eventually(stated, time.Minute).Should(Equal(map[string]string{cpu: "3500m", memory: before[memory]}))
	g.Eventually(recorded, time.Minute).Should(Equal(`{"` + cpu + `":"3500m"}`))
	exported.SetAnnotations(nil)
	g.Expect(applyAs(ctx, c, exported, "argocd")).To(Succeed())
	g.Eventually(stated, time.Minute).Should(Equal(map[string]string{cpu: "3500m", memory: "12444Mi"}), "the client's value is removed")
	inspected(`{"cpu": {"count": 8}, "ramMebibytes": 65536}`)
	g.Eventually(stated, time.Minute).Should(Equal(before))
}

func applyAs(ctx context.Context, c client.Client, u *unstructured.Unstructured, owner string) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner(owner), client.ForceOwnership)
}

func patch(ctx context.Context, g Gomega, c client.Client, kind, version, name, change string) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(watched)
	u.SetName(name)
	g.Expect(c.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(change)))).To(Succeed())
}
