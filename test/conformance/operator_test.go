package conformance_test

import (
	"context"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// operatorVariable says which Bare Metal Operator works on the hosts: see [lab.ParseBackend].
const operatorVariable = "BMO"

// ofHosts is true for the Secrets of BMCs once the Bare Metal Operator owns them, which the simulated one never does.
func ofHosts(ctx context.Context, place conformance.Hub, o *unstructured.Unstructured) (bool, error) {
	owners := o.GetOwnerReferences()
	if o.GetKind() != "Secret" || len(owners) != 1 || place.(*hub).Manager(env.BareMetal) == nil {
		return false, nil
	}
	host := &metal3api.BareMetalHost{}
	if err := place.(*hub).Client().Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: owners[0].Name}, host); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return isCredentials(o, host), nil
}

// isCredentials reports whether a Secret is that of the BMC of a host, and nobody's besides.
func isCredentials(secret *unstructured.Unstructured, host *metal3api.BareMetalHost) bool {
	owners := secret.GetOwnerReferences()
	return len(owners) == 1 && owners[0].UID == host.UID && host.DeletionTimestamp.IsZero() &&
		host.Namespace == secret.GetNamespace() && host.Spec.BMC.CredentialsName == secret.GetName()
}

// What a cluster leaves behind is excused by the name of an owner least of all.
func TestASecretOfAHostIsToldFromOthers(t *testing.T) {
	ofHost := func(name string, owners ...types.UID) *unstructured.Unstructured {
		secret := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret"}}
		secret.SetNamespace("lab")
		secret.SetName(name)
		var refs []metav1.OwnerReference
		for _, uid := range owners {
			refs = append(refs, metav1.OwnerReference{APIVersion: metal3api.GroupVersion.String(), Kind: "BareMetalHost", Name: "host", UID: uid})
		}
		secret.SetOwnerReferences(refs)
		return secret
	}
	elsewhere := ofHost("host-bmc", "1")
	elsewhere.SetNamespace("other")
	host := metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "host", UID: "1"}}
	host.Spec.BMC.CredentialsName = "host-bmc"
	going := host
	going.DeletionTimestamp = ptr.To(metav1.Now())
	for name, c := range map[string]struct {
		secret *unstructured.Unstructured
		host   metal3api.BareMetalHost
		is     bool
	}{
		"the credentials of its BMC":                   {ofHost("host-bmc", "1"), host, true},
		"another one that says that it is owned by it": {ofHost("bootstrap-data", "1"), host, false},
		"of a host that had the name before":           {ofHost("host-bmc", "0"), host, false},
		"owned by something else besides":              {ofHost("host-bmc", "1", "2"), host, false},
		"owned by nobody: that is told by other means": {ofHost("host-bmc"), host, false},
		"in another namespace":                         {elsewhere, host, false},
		"of a host that is deleted: it is to go, too":  {ofHost("host-bmc", "1"), going, false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(isCredentials(c.secret, &c.host)).To(Equal(c.is)) })
	}
}
