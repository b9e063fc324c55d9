package hostconfig

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// ownPart is what we write of a config.
type ownPart struct {
	finalizers []string
	status     bootstrapv1.OpenshiftAssistedConfigStatus
}

// remember notes the status that the config now has, and its finalizers. A reconcile on what the cache held before
// would write the same again, and emit the same events again.
func (r *Reconciler) remember(s *scope, status *bootstrapv1.OpenshiftAssistedConfigStatus) {
	part := ownPart{finalizers: s.stored.Finalizers, status: *status.DeepCopy()}
	r.ours.Record(keyOf(s.Config), part, s.Config.ResourceVersion, s.stored.ResourceVersion)
}

// overlay brings a config from the cache up to date with our last write. The resource version stays: a write on its condition fails and is
// retried.
func (r *Reconciler) overlay(config *bootstrapv1.OpenshiftAssistedConfig) {
	if last, newer := r.ours.NewerThan(keyOf(config), config.ResourceVersion); newer {
		config.Finalizers = slices.Clone(last.finalizers)
		last.status.DeepCopyInto(&config.Status)
	}
}

// addMade adds the InfraEnv that was made a moment ago, as long as the cache does not have it.
func (r *Reconciler) addMade(f *facts.Facts, again *reconcile.Requeue) {
	key := keyOf(f.Config)
	made, left := r.made.Pending(key, "")
	if left == 0 {
		return
	}
	if slices.ContainsFunc(f.InfraEnvs, func(e *assisted.InfraEnv) bool { return e.Name == made.Name }) {
		r.made.Forget(key) // it is seen: when it is not there next time it is gone
		return
	}
	infraEnv := made.DeepCopy()
	f.InfraEnvs = append(f.InfraEnvs, infraEnv)
	if f.Namesake == nil && f.Machine != nil && f.Machine.Name == infraEnv.Name {
		f.Namesake = infraEnv
	}
	again.In(left)
}

// forget ends what is remembered of a config that is gone: one of the same name is another.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.ours.Forget(key)
	r.made.Forget(key)
	r.data.Forget(key)
	r.protected.Forget(key)
	r.unbound.Clear(key)
	r.bound.Clear(key)
	r.addressWaiters.ended(key)
	r.nameWaiters.ended(key)
	r.hostWaiters.ended(key)
	r.secretWaiters.ended(key)
	r.serverWaiters.ended(key)
	r.agentWaiters.ended(key)
}

func keyOf(config *bootstrapv1.OpenshiftAssistedConfig) types.NamespacedName {
	return types.NamespacedName{Namespace: config.Namespace, Name: config.Name}
}
