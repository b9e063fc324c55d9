package e2e

import (
	"context"
	"path"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// expectDeleted deletes clusters at the same time, and checks that only objects of the user and the laboratory
// are left.
func expectDeleted(ctx context.Context, clusters ...*lab.Cluster) {
	GinkgoHelper()
	var registered []string
	if laboratory.Assisted != nil {
		registered = idsOf(ctx, clusters)
	}
	for _, cluster := range clusters {
		expectNoSecretsExposed(ctx, cluster.Namespace)
	}
	errs := make(chan error, len(clusters))
	for _, cluster := range clusters {
		go func() { errs <- cluster.Delete(ctx) }()
	}
	for range clusters {
		Expect(<-errs).To(Succeed())
	}
	for _, cluster := range clusters {
		Eventually(func() []string { return remains(ctx, cluster) }).Should(BeEmpty(), "of cluster %s", cluster.Key())
		expectHostsFree(ctx, cluster)
	}
	for _, id := range registered {
		Eventually(ctx, laboratory.Registered).WithArguments(id).Should(BeFalse(), "cluster %s is unregistered", id)
	}
}

// idsOf returns the ids by which the real assisted-service knows the clusters.
func idsOf(ctx context.Context, clusters []*lab.Cluster) []string {
	GinkgoHelper()
	var ids []string
	for _, cluster := range clusters {
		metadata := state(ctx, cluster).Installation.Spec.ClusterMetadata
		Expect(metadata).NotTo(BeNil(), "cluster %s was registered", cluster.Key())
		Expect(laboratory.Registered(ctx, metadata.InfraID)).To(BeTrue())
		ids = append(ids, metadata.InfraID)
	}
	return ids
}

// remains returns the objects in a cluster's namespace that only its controllers can have created.
func remains(ctx context.Context, cluster *lab.Cluster) []string {
	GinkgoHelper()
	var names []string
	for _, kind := range lab.Kinds {
		switch kind.Kind {
		case "Event", "BareMetalHost", "Metal3MachineTemplate", "OpenshiftAssistedConfigTemplate":
			continue
		}
		for _, object := range listAll(ctx, kind, cluster.Namespace) {
			if !usersOwn(object) && belongs(object, cluster) {
				names = append(names, kind.Kind+" "+object.GetName())
			}
		}
	}
	return names
}

// usersOwn reports whether an object existed before the cluster. Such objects are the pull secret, the Secrets
// of the BMCs, and ConfigMaps with mirrors and manifests. Objects that Kubernetes creates in each namespace and
// foreign objects count as well.
func usersOwn(object unstructured.Unstructured) bool {
	name := object.GetName()
	switch object.GetKind() {
	case "Secret":
		return strings.HasSuffix(name, "-pull-secret") && len(object.GetOwnerReferences()) == 0 &&
			slices.ContainsFunc(object.GetManagedFields(), managedByUser) || strings.HasSuffix(name, "-bmc")
	case "ConfigMap":
		return name == "kube-root-ca.crt" || name == lab.CAConfigMap || slices.ContainsFunc(object.GetManagedFields(), managedByUser)
	}
	return name == "foreign"
}

// belongs reports whether an object belongs to a cluster. Cluster-scoped objects have the name of its namespace.
func belongs(object unstructured.Unstructured, cluster *lab.Cluster) bool {
	return object.GetNamespace() == cluster.Namespace || strings.HasPrefix(object.GetName(), cluster.Namespace+"-"+cluster.Name)
}

// expectHostsFree checks that the hosts of a deleted cluster are deprovisioned and off.
func expectHostsFree(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	for _, created := range cluster.Hosts {
		key := path.Join(created.Namespace, created.Name)
		Eventually(func(g Gomega) {
			host := &metal3api.BareMetalHost{}
			g.Expect(laboratory.Client().Get(ctx, keyOf(created), host)).To(Succeed())
			g.Expect(host.Status.Provisioning.State).To(Equal(metal3api.StateAvailable), key)
			g.Expect(host.Spec.Image).To(BeNil(), key)
			g.Expect(host.Spec.ConsumerRef).To(BeNil(), key)
			g.Expect(host.Status.PoweredOn).To(BeFalse(), key)
			g.Expect(laboratory.Rack.Host(key).PoweredOn()).To(BeFalse(), key)
		}).Should(Succeed())
	}
}

// expectUnchanged checks that a cluster is unchanged.
func expectUnchanged(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	expectInstalled(ctx, cluster, 0)
}
