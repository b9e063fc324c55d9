package clusterctl

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// reinstall follows docs/operations/uninstalling.md: the providers are uninstalled while the Clusters are paused, and
// installed again.
func (w *world) reinstall(clusters map[string]*lab.Cluster) {
	g := NewWithT(w)
	w.awaitReconciled()
	w.expectNothingRefused()
	boots := w.boots(clusters)
	w.pause(clusters, true)
	w.run(uninstallPage, "uninstallation")
	w.expectNoManagers()
	g.Expect(w.kinds()).To(HaveLen(4), "with the kinds all clusters would be deleted")
	for _, cluster := range clusters {
		controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{}
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name}
		g.Expect(w.lab.Client().Get(w.Context(), key, controlPlane)).To(Succeed())
		g.Expect(controlPlane.DeletionTimestamp).To(BeNil())
	}
	w.begin = time.Now() // until a manager is stopped, it sends requests for which it has no rights any more
	w.run(uninstallPage, "reinstallation")
	w.expectRelease(w.after)
	w.pause(clusters, false)
	ctx, cancel := context.WithTimeout(w.Context(), installTimeout)
	defer cancel()
	w.awaitAvailable(ctx, clusters)
	w.awaitReconciled()
	g.Expect(w.boots(clusters)).To(Equal(boots), "neither the uninstallation nor the installation boots a host")
}

// uninstall removes the providers of a hub without clusters, and their kinds.
func (w *world) uninstall() {
	w.run(uninstallPage, "removal")
	w.expectNoManagers()
	NewWithT(w).Eventually(w.kinds).WithTimeout(soon).Should(BeEmpty())
}

// pause pauses or unpauses all clusters.
func (w *world) pause(clusters map[string]*lab.Cluster, paused bool) {
	w.Helper()
	for _, cluster := range clusters {
		object := &clusterv1.Cluster{}
		object.Namespace, object.Name = cluster.Namespace, cluster.Name
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused))
		NewWithT(w).Expect(w.lab.Client().Patch(w.Context(), object, patch)).To(Succeed())
	}
}

// expectNoManagers waits until both managers are stopped.
func (w *world) expectNoManagers() {
	w.Helper()
	for name := range kebab {
		NewWithT(w).Eventually(func() any { return w.deployments.Process(name) }).WithTimeout(soon).Should(BeNil(), name)
	}
}

// kinds are the names of our CustomResourceDefinitions.
func (w *world) kinds() []string {
	w.Helper()
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	NewWithT(w).Expect(w.lab.Client().List(w.Context(), list)).To(Succeed())
	var names []string
	for _, kind := range list.Items {
		if strings.HasPrefix(kind.Name, "openshiftassisted") {
			names = append(names, kind.Name)
		}
	}
	return names
}
