package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// idleTime is how long idle clusters are observed.
const idleTime = time.Minute

// settleTime is how long objects must not change to count as settled: statuses of little interest may be deferred
// for some seconds.
const settleTime = reconcile.DeferralPeriod + 2*time.Second

// listAll reads all objects of a kind in a namespace; the namespace does not matter for cluster-scoped kinds.
func listAll(ctx context.Context, kind schema.GroupVersionKind, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	return listAt(ctx, laboratory, kind, namespace)
}

// listAt is listAll on a hub, with options.
func listAt(ctx context.Context, hub *lab.Lab, kind schema.GroupVersionKind, namespace string,
	options ...client.ListOption,
) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	Expect(hub.Client().List(ctx, list, append(options, client.InNamespace(namespace))...)).To(Succeed())
	return list.Items
}

// versions returns the resource versions of all objects in the namespaces.
func versions(ctx context.Context, namespaces []string) map[string]string {
	GinkgoHelper()
	result := map[string]string{}
	for _, namespace := range namespaces {
		for _, kind := range lab.Kinds {
			for _, object := range listAll(ctx, kind, namespace) {
				result[fmt.Sprintf("%s %s/%s", kind.Kind, object.GetNamespace(), object.GetName())] = object.GetResourceVersion()
			}
		}
	}
	return result
}

// expectIdle checks that installed clusters are idle: no object is written, and our managers send no requests.
// Foreign Agents, AgentClusterInstalls and BareMetalHosts, which change all the time, do not concern them.
func expectIdle(ctx context.Context, clusters ...*lab.Cluster) {
	GinkgoHelper()
	applied.deletions.Wait()
	var foreign []client.Object
	namespaces := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		namespaces = append(namespaces, cluster.Namespace)
		foreign = append(foreign, addForeignObjects(ctx, cluster.Namespace)...)
	}
	before, begin := ours(waitSettled(ctx, namespaces...)), time.Now()
	Consistently(func() map[string]string {
		stir(ctx, foreign)
		return ours(versions(ctx, namespaces))
	}).WithTimeout(idleTime).WithPolling(10 * time.Second).Should(Equal(before))
	for _, manager := range ourManagers() {
		requests, err := laboratory.Env.Requests(manager.User, begin)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests.Unrest().Count()).To(BeEmpty(), "requests of %s in an idle minute", manager.Name)
	}
	for _, cluster := range clusters {
		requests := toWorkload(cluster).Where(func(r audit.Request) bool { return !r.Time.Before(begin) })
		Expect(requests.Unrest().Count()).To(BeEmpty(), "requests to cluster %s in an idle minute", cluster.Key())
	}
}

// foreignName is the name of foreign objects in the namespaces of our clusters.
const foreignName = "foreign"

// ours returns the versions without those of foreign objects.
func ours(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(object, _ string) bool { return strings.HasSuffix(object, "/"+foreignName) })
	return all
}

// stir changes objects as their owners do.
func stir(ctx context.Context, objects []client.Object) {
	GinkgoHelper()
	now := fmt.Sprintf(`{"metadata":{"labels":{"stirred":"%d"},"annotations":{"stirred":"%[1]d"}}}`, time.Now().UnixNano())
	for _, object := range objects {
		Expect(laboratory.Client().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(now)))).To(Succeed())
	}
}

// waitSettled waits until the effects of the last change have ended, and returns the versions of all objects.
func waitSettled(ctx context.Context, namespaces ...string) map[string]string {
	GinkgoHelper()
	begin, before := time.Now(), versions(ctx, namespaces)
	Eventually(func(g Gomega) {
		if now := versions(ctx, namespaces); !equal(now, before) {
			begin, before = time.Now(), now
		}
		g.Expect(time.Since(begin)).To(BeNumerically(">=", settleTime), "no object changes")
	}).WithTimeout(3 * time.Minute).WithPolling(time.Second).Should(Succeed())
	return before
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return true
}

// addForeignObjects creates a foreign Agent, AgentClusterInstall and BareMetalHost.
func addForeignObjects(ctx context.Context, namespace string) []client.Object {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: foreignName}
	install := &hiveext.AgentClusterInstall{ObjectMeta: meta}
	install.Spec.ClusterDeploymentRef = corev1.LocalObjectReference{Name: foreignName}
	install.Spec.ProvisionRequirements.ControlPlaneAgents = 3
	objects := []client.Object{install, &aiv1beta1.Agent{ObjectMeta: meta}, &metal3api.BareMetalHost{ObjectMeta: meta}}
	for _, object := range objects {
		Expect(laboratory.Client().Create(ctx, object)).To(Succeed())
	}
	DeferCleanup(func(ctx SpecContext) {
		for _, object := range objects {
			Expect(client.IgnoreNotFound(laboratory.Client().Delete(ctx, object))).To(Succeed())
		}
	}, NodeTimeout(soon))
	return objects
}

// writesIn returns the writes of our managers to a namespace since a point in time.
func writesIn(namespace string, since time.Time) audit.Requests {
	GinkgoHelper()
	return requestsIn(namespace, since).Writes()
}

// requestsIn returns all requests of our managers about a namespace since a point in time.
func requestsIn(namespace string, since time.Time) audit.Requests {
	GinkgoHelper()
	return ourRequests(since).Where(about(namespace))
}

// ourRequests returns all requests of our managers since a point in time. The duration of the call grows with
// the age of the laboratory.
func ourRequests(since time.Time) audit.Requests {
	GinkgoHelper()
	requests, err := laboratory.Env.Requests("", since)
	Expect(err).NotTo(HaveOccurred())
	return requests.Where(func(r audit.Request) bool {
		return slices.ContainsFunc(ourManagers(), func(manager *process.Process) bool { return manager.User == r.User })
	})
}

// verify matches requests about a namespace. Cluster-scoped objects have its name as a prefix.
func about(namespace string) func(audit.Request) bool {
	return func(r audit.Request) bool {
		return r.Namespace == namespace || r.Namespace == "" && strings.HasPrefix(r.Name, namespace+"-")
	}
}
