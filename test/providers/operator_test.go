package providers_test

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

// operatorVariable is the environment variable that selects the Bare Metal Operator of the hosts: see
// [lab.ParseBackend].
const operatorVariable = "BMO"

// ofHosts reports whether an object is a Secret of a BMC that the Bare Metal Operator owns. The simulated
// operator never owns them.
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

// isCredentials reports whether a Secret has the credentials of the BMC of a host, and no other owner.
func isCredentials(secret *unstructured.Unstructured, host *metal3api.BareMetalHost) bool {
	owners := secret.GetOwnerReferences()
	return len(owners) == 1 && owners[0].UID == host.UID && host.DeletionTimestamp.IsZero() &&
		host.Namespace == secret.GetNamespace() && host.Spec.BMC.CredentialsName == secret.GetName()
}

// The name of an owner alone does not make an object part of a host.
func TestIsCredentials(t *testing.T) {
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
	deleting := host
	deleting.DeletionTimestamp = ptr.To(metav1.Now())
	for name, c := range map[string]struct {
		secret *unstructured.Unstructured
		host   metal3api.BareMetalHost
		is     bool
	}{
		"the credentials of its BMC":                 {ofHost("host-bmc", "1"), host, true},
		"another Secret that the host owns":          {ofHost("bootstrap-data", "1"), host, false},
		"of a former host of the same name":          {ofHost("host-bmc", "0"), host, false},
		"with a second owner":                        {ofHost("host-bmc", "1", "2"), host, false},
		"without an owner, which other rules detect": {ofHost("host-bmc"), host, false},
		"in another namespace":                       {elsewhere, host, false},
		"of a host that is being deleted":            {ofHost("host-bmc", "1"), deleting, false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(isCredentials(c.secret, &c.host)).To(Equal(c.is)) })
	}
}
