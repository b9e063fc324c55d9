package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/versionoperator"
)

// hostAway is how long a host is away that is rebooted with another machine configuration, besides the time it takes to boot.
const hostAway = 500 * time.Millisecond

// operatorsAway is how long no static Pod serves after the restart of the only master, by its operators.
const operatorsAway = time.Second

// staticPods are the ClusterOperators whose operands are static Pods, and whose health the manager reads.
var staticPods = []string{"etcd", "kube-apiserver"}

// useVersions gives a cluster the operators that upgrade it, as soon as its API is up. Release images are those of the registry.
func (l *Lab) useVersions(key types.NamespacedName, w *workload) error {
	log, err := l.openLog("version-operator-" + w.server.Name + ".log")
	if err != nil {
		return err
	}
	w.versions = versionoperator.New(versionoperator.Options{
		Payload: l.Registry.Version, Log: log, Drain: l.options.Drain,
		Reboot: func(ctx context.Context, node string) error { return w.reboot(ctx, key, node) },
	})
	life, end := context.WithCancel(l.life)
	var running sync.WaitGroup
	w.operate = append(w.operate, func() {
		api, err := watchClient(w.server, l.Env)
		if err != nil {
			l.fail(err)
			return
		}
		running.Go(func() { w.versions.Run(life, api) })
		l.running.Go(running.Wait)
	})
	w.leave = append(w.leave, func() {
		end()
		running.Wait()
	})
	return nil
}

func watchClient(server *env.WorkloadCluster, e *env.Env) (client.WithWatch, error) {
	c, err := client.NewWithWatch(server.Config(), client.Options{Scheme: e.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of workload cluster %s: %w", server.Name, err)
	}
	return c, nil
}

// reboot reboots the host of a Node. That of the only master takes the API of the cluster along.
func (w *workload) reboot(ctx context.Context, cluster types.NamespacedName, node string) error {
	w.mu.Lock()
	rack := w.rack
	w.mu.Unlock()
	host := rack.HostOf(cluster.Namespace, cluster.Name, node)
	if host == nil {
		return fmt.Errorf("there is no host of Node %s", node)
	}
	alone, err := w.onlyMaster(ctx, node)
	if err != nil {
		return err
	}
	if alone {
		w.server.Process().Kill()
	}
	boot := host.Hang()
	defer boot()
	host.Reboot()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(hostAway):
	}
	if !alone {
		return nil
	}
	return w.bringBackAlone(ctx)
}

// bringBackAlone starts the API server of the only master, whose operators are unavailable for some time: until
// operatorsAway has passed, or as long as a test holds them.
func (w *workload) bringBackAlone(ctx context.Context) error {
	for _, operator := range staticPods {
		w.versions.Interrupt(operator)
	}
	if err := w.bringBack(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	held := w.operatorsHeld
	w.mu.Unlock()
	var passed <-chan time.Time
	if held == nil {
		passed = time.After(operatorsAway)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-held:
	case <-passed:
	}
	for _, operator := range staticPods {
		w.versions.Recover(operator)
	}
	return nil
}

func (w *workload) onlyMaster(ctx context.Context, node string) (bool, error) {
	api, err := w.running()
	if err != nil {
		return false, err
	}
	masters := &corev1.NodeList{}
	if err := api.List(ctx, masters, client.HasLabels{"node-role.kubernetes.io/master"}); err != nil {
		return false, fmt.Errorf("cannot list the Nodes: %w", err)
	}
	return len(masters.Items) == 1 && masters.Items[0].Name == node, nil
}

// bringBack starts the API server again, unless it was stopped for good meanwhile.
func (w *workload) bringBack(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil
	}
	return w.server.Process().Start(ctx)
}

// Versions is what a test and an administrator do to the release of an installed cluster.
type Versions struct {
	// Operator can be made to fail, and to wait.
	*versionoperator.Operator

	cluster *Cluster
}

// Versions is the handle for upgrades of the cluster; nil where its API is light, and in a laboratory without.
func (c *Cluster) Versions() *Versions {
	if c.workload.versions == nil {
		return nil
	}
	return &Versions{Operator: c.workload.versions, cluster: c}
}

// HoldOperators keeps the operators of a cluster with one master unavailable after the next restart of its host until
// release is called.
func (v *Versions) HoldOperators() (release func()) {
	w, held := v.cluster.workload, make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operatorsHeld = held
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.operatorsHeld = nil
		close(held)
	})
}

// PatchControlPlane changes the control plane of the cluster, as "kubectl patch --type merge" does.
func (c *Cluster) PatchControlPlane(ctx context.Context, patch string) error {
	state, err := c.State(ctx)
	if err != nil {
		return err
	}
	if state.ControlPlane == nil {
		return fmt.Errorf("%s has no control plane", c.Key())
	}
	if err := c.lab.Client().Patch(ctx, state.ControlPlane, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("cannot change the control plane of %s: %w", c.Key(), err)
	}
	return nil
}

// Publish puts a release into the registry, and offers it to the cluster: in channels, or, without any, by its image alone.
func (v *Versions) Publish(version string, channels ...string) (versionoperator.Release, error) {
	image, err := v.cluster.lab.Registry.Publish(version)
	if err != nil {
		return versionoperator.Release{}, err
	}
	release := versionoperator.Release{Version: version, Image: image, Channels: channels}
	v.Offer(release)
	return release, nil
}

// ClusterVersion is what the cluster says of its version.
func (v *Versions) ClusterVersion(ctx context.Context) (*configv1.ClusterVersion, error) {
	found := &configv1.ClusterVersion{}
	return found, v.get(ctx, "", versionoperator.VersionName, found)
}

// Pool is a MachineConfigPool of the cluster.
func (v *Versions) Pool(ctx context.Context, name string) (*machineconfigv1.MachineConfigPool, error) {
	found := &machineconfigv1.MachineConfigPool{}
	return found, v.get(ctx, "", name, found)
}

// Request asks for an update from outside, as "oc adm upgrade" does; nil: the request is cleared.
func (v *Versions) Request(ctx context.Context, update *configv1.Update) error {
	return v.change(ctx, versionoperator.VersionName, &configv1.ClusterVersion{}, func(object client.Object) {
		object.(*configv1.ClusterVersion).Spec.DesiredUpdate = update //nolint:forcetypeassert // it is what was given
	})
}

// SetChannel likewise chooses a channel; empty: none.
func (v *Versions) SetChannel(ctx context.Context, channel string) error {
	return v.change(ctx, versionoperator.VersionName, &configv1.ClusterVersion{}, func(object client.Object) {
		object.(*configv1.ClusterVersion).Spec.Channel = channel //nolint:forcetypeassert // likewise
	})
}

// PausePool pauses a MachineConfigPool, or lets it go on.
func (v *Versions) PausePool(ctx context.Context, name string, paused bool) error {
	return v.change(ctx, name, &machineconfigv1.MachineConfigPool{}, func(object client.Object) {
		object.(*machineconfigv1.MachineConfigPool).Spec.Paused = paused //nolint:forcetypeassert // likewise
	})
}

// AddGate makes the minor version wait until an administrator has acknowledged something. Gates are named after the
// version that is left: ack-4.20-…
func (v *Versions) AddGate(ctx context.Context, name, description string) error {
	return v.put(ctx, versionoperator.GatesNamespace, versionoperator.Gates, name, description)
}

// Acknowledge does so.
func (v *Versions) Acknowledge(ctx context.Context, gate string) error {
	return v.put(ctx, versionoperator.AcksNamespace, versionoperator.Acks, gate, "true")
}

// Acknowledged are the gates that were, by anybody.
func (v *Versions) Acknowledged(ctx context.Context) (map[string]string, error) {
	found := &corev1.ConfigMap{}
	err := v.get(ctx, versionoperator.AcksNamespace, versionoperator.Acks, found)
	return found.Data, client.IgnoreNotFound(err)
}

func (v *Versions) get(ctx context.Context, namespace, name string, object client.Object) error {
	api, err := v.cluster.Workload()
	if err != nil {
		return err
	}
	if err := api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		return fmt.Errorf("cannot read %s of %s: %w", name, v.cluster.Key(), err)
	}
	return nil
}

// change patches what an administrator changes.
func (v *Versions) change(ctx context.Context, name string, object client.Object, change func(client.Object)) error {
	if err := v.get(ctx, "", name, object); err != nil {
		return err
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("a copy is no object")
	}
	change(object)
	api, err := v.cluster.Workload()
	if err != nil {
		return err
	}
	if err := api.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot change %s of %s: %w", name, v.cluster.Key(), err)
	}
	return nil
}

// put writes one key of a ConfigMap, which is made where it is not there.
func (v *Versions) put(ctx context.Context, namespace, name, key, value string) error {
	api, err := v.cluster.Workload()
	if err != nil {
		return err
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := api.Create(ctx, config); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("cannot create %s of %s: %w", name, v.cluster.Key(), err)
	}
	patch := fmt.Appendf(nil, `{"data":{%q:%q}}`, key, value)
	if err := api.Patch(ctx, config, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("cannot write %s of %s: %w", name, v.cluster.Key(), err)
	}
	return nil
}
