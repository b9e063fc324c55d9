package config

import (
	"slices"
	"sync"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// writes remembers what was written last for each config. The cache may be behind our own writes; a reconcile on what it then holds would
// write the same again and emit the same events again.
type writes struct {
	byConfig sync.Map // types.NamespacedName to write
	made     sync.Map // types.NamespacedName to creation
	data     sync.Map // types.NamespacedName to dataWrite
	machines sync.Map // types.NamespacedName to protection
	// bound says since when assisted-service has not taken in that an Agent is bound. A restart begins anew.
	bound sync.Map // types.NamespacedName to time.Time
}

type write struct {
	// outdated are the resource versions that are older than the write.
	outdated   []string
	finalizers []string
	status     *bootstrapv1.OpenshiftAssistedConfigStatus
}

// creation is an InfraEnv that did not exist before.
type creation struct {
	infraEnv *aiv1beta1.InfraEnv
	at       time.Time
}

// dataWrite is bootstrap data that was made.
type dataWrite struct {
	digest string
	at     time.Time
}

// remember notes the status that the config now has, and its finalizers.
func (w *writes) remember(s *scope, status *bootstrapv1.OpenshiftAssistedConfigStatus) {
	w.byConfig.Store(keyOf(s.Config), write{
		outdated:   []string{s.Config.ResourceVersion, s.stored.ResourceVersion},
		finalizers: s.stored.Finalizers,
		status:     status.DeepCopy(),
	})
}

func (w *writes) forget(key types.NamespacedName) {
	w.byConfig.Delete(key)
	w.made.Delete(key)
	w.data.Delete(key)
	w.machines.Delete(key)
	w.bound.Delete(key)
}

func (w *writes) rememberData(key types.NamespacedName, digest string, now time.Time) {
	w.data.Store(key, dataWrite{digest, now})
}

// unseenData returns for how long the cache may not have the data, made from the same source, that was written a moment ago: it is not downloaded twice.
func (w *writes) unseenData(key types.NamespacedName, digest string, now time.Time) time.Duration {
	value, ok := w.data.Load(key)
	if !ok {
		return 0
	}
	if last, ok := value.(dataWrite); ok && last.digest == digest {
		if left := reconcile.CacheLag - now.Sub(last.at); left > 0 {
			return left
		}
	}
	w.data.Delete(key)
	return 0
}

// overlay brings a config from the cache up to date with our last write. The resource version stays: a write on its condition fails and is
// retried.
func (w *writes) overlay(config *bootstrapv1.OpenshiftAssistedConfig) {
	value, ok := w.byConfig.Load(keyOf(config))
	if !ok {
		return
	}
	if last, ok := value.(write); ok && slices.Contains(last.outdated, config.ResourceVersion) {
		config.Finalizers = slices.Clone(last.finalizers)
		last.status.DeepCopyInto(&config.Status)
	}
}

// boundAt is when it was first seen that the Agent is bound and assisted-service has not taken it in.
func (w *writes) boundAt(key types.NamespacedName, now time.Time) time.Time {
	since, _ := w.bound.LoadOrStore(key, now)
	at, _ := since.(time.Time)
	return at
}

func keyOf(config *bootstrapv1.OpenshiftAssistedConfig) types.NamespacedName {
	return types.NamespacedName{Namespace: config.Namespace, Name: config.Name}
}

func (w *writes) rememberMade(s *scope, infraEnv *aiv1beta1.InfraEnv, now time.Time) {
	w.made.Store(keyOf(s.Config), creation{infraEnv.DeepCopy(), now})
}

// addMade adds the InfraEnv that was made a moment ago, as long as the cache does not have it.
func (w *writes) addMade(f *facts.Facts, again *reconcile.Again, now time.Time) {
	key := keyOf(f.Config)
	value, ok := w.made.Load(key)
	if !ok {
		return
	}
	last, ok := value.(creation)
	left := reconcile.CacheLag - now.Sub(last.at)
	if !ok || left <= 0 || slices.ContainsFunc(f.InfraEnvs, func(e *aiv1beta1.InfraEnv) bool { return e.Name == last.infraEnv.Name }) {
		w.made.Delete(key)
		return
	}
	infraEnv := last.infraEnv.DeepCopy()
	f.InfraEnvs = append(f.InfraEnvs, infraEnv)
	if f.Namesake == nil && f.Machine != nil && f.Machine.Name == infraEnv.Name {
		f.Namesake = infraEnv
	}
	again.In(left)
}
