package e2e

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const deploymentKind = "MachineDeployment"

// withInPlaceUpdates enables in-place updates in Cluster API core, and the extension for them in the control
// plane manager.
var withInPlaceUpdates = env.ManagerOptions{Variables: map[string]string{"EXP_RUNTIME_SDK": "true", "EXP_IN_PLACE_UPDATES": "true"}}

// updatedInPlace sets the version of the installed release for workers, and lets Cluster API update them in place.
func updatedInPlace() func(*unstructured.Unstructured) {
	GinkgoHelper()
	return edits(
		edit(deploymentKind, kubernetesOf(installedVersion), "spec", "template", "spec", "version"),
		edit(deploymentKind, map[string]any{
			"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(1)},
		}, "spec", "rollout", "strategy"),
	)
}

// registerExtension applies the shipped ExtensionConfig for one namespace, and waits until Cluster API has
// discovered the extension. It uses a URL, because the laboratory has no Service.
func registerExtension(ctx context.Context, namespace string) {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "controlplane", "in-place-updates.yaml"))
	Expect(err).NotTo(HaveOccurred())
	objects, err := yaml.ToUnstructured(content)
	Expect(err).NotTo(HaveOccurred())
	extension := &objects[len(objects)-1]
	Expect(extension.GetKind()).To(Equal("ExtensionConfig"))
	url, authorities := laboratory.Env.Webhooks(env.ControlPlane)
	extension.SetAnnotations(nil)
	extension.Object["spec"] = map[string]any{
		"clientConfig":      map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(authorities)},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: namespace}},
	}
	Expect(laboratory.Client().Create(ctx, extension)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(laboratory.Client().Delete(ctx, extension)).To(Succeed()) }, NodeTimeout(soon))
	Eventually(ctx, func() ([]any, error) {
		err := laboratory.Client().Get(ctx, client.ObjectKeyFromObject(extension), extension)
		handlers, _, _ := unstructured.NestedSlice(extension.Object, "status", "handlers")
		return handlers, err
	}).WithTimeout(soon).Should(HaveLen(3), "Cluster API has discovered the hooks")
}

// workersOf returns the MachineDeployment of a cluster.
func workersOf(ctx context.Context, cluster *lab.Cluster) *clusterv1.MachineDeployment {
	GinkgoHelper()
	found := &clusterv1.MachineDeployment{}
	Expect(laboratory.Client().Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-worker"}, found)).To(Succeed())
	return found
}

// expectUpdatedInPlace sets a version for workers, and waits until Cluster API reports that they have it; goOn
// resumes their pool meanwhile.
func expectUpdatedInPlace(ctx context.Context, cluster *lab.Cluster, version string, goOn func()) {
	GinkgoHelper()
	images := hostImages(ctx, cluster)
	patch(ctx, workersOf(ctx, cluster), updateInPlace(version))
	wait(ctx, cluster, "a worker during its update", func(s *lab.State) bool {
		for _, m := range s.Machines {
			c := lab.Condition(m.Status.Conditions, clusterv1.MachineUpdatingCondition)
			if c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "its MachineConfigPool has not updated it to "+version) {
				return true
			}
		}
		return false
	})
	goOn()
	Eventually(ctx, func(g Gomega) {
		deployment := workersOf(ctx, cluster)
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(deployment.Status.UpToDateReplicas).To(HaveValue(Equal(*deployment.Spec.Replicas)))
		for _, m := range state(ctx, cluster).Machines {
			g.Expect(m.Spec.Version).To(Equal(version), m.Name)
			g.Expect(m.Annotations).NotTo(HaveKey(clusterv1.UpdateInProgressAnnotation), m.Name)
		}
	}).WithTimeout(installTimeout).Should(Succeed())
	Expect(hostImages(ctx, cluster)).To(Equal(images),
		"Cluster API overwrites fields of a moved Machine with the templates; that must not provision a host")
}

// updateInPlace returns a patch with a version that Cluster API sets in place.
func updateInPlace(version string) string {
	return `{"metadata":{"annotations":{"bootstrap.cluster.x-k8s.io/update-in-place":"` + version +
		`"}},"spec":{"template":{"spec":{"version":"` + version + `"}}}}`
}

// hostImages returns the images with which the hosts of a cluster were provisioned.
func hostImages(ctx context.Context, cluster *lab.Cluster) map[string]*metal3api.Image {
	GinkgoHelper()
	hosts := &metal3api.BareMetalHostList{}
	Expect(laboratory.Client().List(ctx, hosts, client.InNamespace(cluster.Namespace))).To(Succeed())
	images := map[string]*metal3api.Image{}
	for i := range hosts.Items {
		images[hosts.Items[i].Name] = hosts.Items[i].Spec.Image
	}
	return images
}
