package hostconfig

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
)

// ownPart holds the fields of a config that we write.
type ownPart struct {
	finalizers []string
	status     bootstrapv1.OpenshiftAssistedConfigStatus
}

// remember records the current status and finalizers of the config. A reconcile of the older config in the cache
// would write the same again, and emit the same events again.
func (r *Reconciler) remember(s *scope.Scope, status *bootstrapv1.OpenshiftAssistedConfigStatus) {
	part := ownPart{finalizers: s.Stored.Finalizers, status: *status.DeepCopy()}
	r.ours.Record(s.Key(), part, s.Config.ResourceVersion, s.Stored.ResourceVersion)
}

// overlay updates a config from the cache with our last write. The resource version stays: a write that requires
// it fails and is retried.
func (r *Reconciler) overlay(config *bootstrapv1.OpenshiftAssistedConfig) {
	if last, newer := r.ours.NewerThan(client.ObjectKeyFromObject(config), config.ResourceVersion); newer {
		config.Finalizers = slices.Clone(last.finalizers)
		last.status.DeepCopyInto(&config.Status)
	}
}

// forget drops the records of a deleted config: a config of the same name is another one.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.ours.Forget(key)
	r.writer.Created.Forget(key)
	r.bootData.Forget(key)
	r.protector.Forget(key)
	r.gatherer.Forget(key)
	r.claims.Forget(key)
	r.fencing.Forget(key)
	r.binder.Forget(key)
}

// configChanges drops our own status writes, and passes foreign ones. A status that another client removed is
// written again.
func (r *Reconciler) configChanges() predicate.Predicate {
	return informer.Changed(func(before, after *bootstrapv1.OpenshiftAssistedConfig) bool {
		last, known := r.ours.Last(client.ObjectKeyFromObject(after))
		return !equality.Semantic.DeepEqual(before.Status, after.Status) && !(known && equality.Semantic.DeepEqual(last.status, after.Status))
	})
}
