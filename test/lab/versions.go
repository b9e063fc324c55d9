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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

// hostAway is the downtime of a host for another machine configuration, without its boot time.
const hostAway = 500 * time.Millisecond

// operatorsAway is the time after the restart of the only master in which its operators report no serving
// static Pod.
const operatorsAway = time.Second

// staticPods are the ClusterOperators with static Pods whose health the manager reads.
var staticPods = []string{"etcd", "kube-apiserver"}

// useVersions starts the operators that upgrade a cluster, as soon as its API runs. Release images come from
// the registry.
func (l *Lab) useVersions(key types.NamespacedName, w *workload) error {
	log, err := l.openLog("version-operator-" + w.server.Name + ".log")
	if err != nil {
		return err
	}
	w.versions = versionoperator.New(versionoperator.Options{
		Payload: l.Registry.Version, Log: log, Drain: l.options.Drain, Serve: w.server.ReportKubernetes,
		Reboot: func(ctx context.Context, node string) error { return w.reboot(ctx, key, node) },
	})
	w.operates(l, func(ctx context.Context) {
		api, err := watchClient(w.server, l.Env)
		if err != nil {
			l.fail(err)
			return
		}
		w.versions.Run(ctx, api)
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

// reboot reboots the host of a Node. With the only master, the API of the cluster stops meanwhile.
func (w *workload) reboot(ctx context.Context, cluster types.NamespacedName, node string) error {
	w.mu.Lock()
	rack := w.rack
	w.mu.Unlock()
	host := rack.HostOf(cluster.Namespace, cluster.Name, node)
	if host == nil {
		return fmt.Errorf("node %s has no host", node)
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
	return w.restartOnlyMaster(ctx)
}

// restartOnlyMaster starts the API server of the only master. Its operators are unavailable until operatorsAway
// has passed, or until a test releases them.
func (w *workload) restartOnlyMaster(ctx context.Context) error {
	for _, operator := range staticPods {
		w.versions.Interrupt(operator)
	}
	if err := w.restartServer(ctx); err != nil {
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

// restartServer starts the API server again, unless it was stopped for good meanwhile.
func (w *workload) restartServer(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return nil
	}
	return w.server.Process().Start(ctx)
}

// Versions gives a test and an administrator access to the release of an installed cluster.
type Versions struct {
	// Operator is the simulated version operator, which can fail and wait.
	*versionoperator.Operator

	cluster *Cluster
}

// Versions returns the handle for upgrades of the cluster; nil with LightAPI or NoUpgrades.
func (c *Cluster) Versions() *Versions {
	if c.workload.versions == nil {
		return nil
	}
	return &Versions{Operator: c.workload.versions, cluster: c}
}

// HoldOperators keeps the operators of a cluster with one master unavailable after the next restart of its host
// until release is called.
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

// PatchControlPlane changes the control plane of the cluster like "kubectl patch --type merge".
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

// Publish pushes a release and offers it to the cluster in channels, or without channels only by its image.
func (v *Versions) Publish(version string, channels ...string) (versionoperator.Release, error) {
	image, err := v.cluster.lab.Registry.Publish(version)
	if err != nil {
		return versionoperator.Release{}, err
	}
	release := versionoperator.Release{Version: version, Image: image, Channels: channels}
	v.Offer(release)
	return release, nil
}

// ClusterVersion returns the ClusterVersion of the cluster.
func (v *Versions) ClusterVersion(ctx context.Context) (*configv1.ClusterVersion, error) {
	found := &configv1.ClusterVersion{}
	return found, v.get(ctx, "", versionoperator.VersionName, found)
}

// Pool returns a MachineConfigPool of the cluster.
func (v *Versions) Pool(ctx context.Context, name string) (*machineconfigv1.MachineConfigPool, error) {
	found := &machineconfigv1.MachineConfigPool{}
	return found, v.get(ctx, "", name, found)
}

// Request requests an update in the cluster like "oc adm upgrade"; nil clears the request.
func (v *Versions) Request(ctx context.Context, update *configv1.Update) error {
	return v.change(ctx, versionoperator.VersionName, &configv1.ClusterVersion{}, func(object client.Object) {
		object.(*configv1.ClusterVersion).Spec.DesiredUpdate = update //nolint:forcetypeassert // type of the argument
	})
}

// SetChannel sets the channel in the cluster; empty: none.
func (v *Versions) SetChannel(ctx context.Context, channel string) error {
	return v.change(ctx, versionoperator.VersionName, &configv1.ClusterVersion{}, func(object client.Object) {
		object.(*configv1.ClusterVersion).Spec.Channel = channel //nolint:forcetypeassert // likewise
	})
}

// PausePool pauses or resumes a MachineConfigPool.
func (v *Versions) PausePool(ctx context.Context, name string, paused bool) error {
	return v.change(ctx, name, &machineconfigv1.MachineConfigPool{}, func(object client.Object) {
		object.(*machineconfigv1.MachineConfigPool).Spec.Paused = paused //nolint:forcetypeassert // likewise
	})
}

// AddGate blocks the upgrade to the next minor version until an administrator acknowledges the gate. Names of
// gates begin with the current version: ack-4.20-…
func (v *Versions) AddGate(ctx context.Context, name, description string) error {
	return v.put(ctx, versionoperator.GatesNamespace, versionoperator.Gates, name, description)
}

// Acknowledge acknowledges a gate.
func (v *Versions) Acknowledge(ctx context.Context, gate string) error {
	return v.put(ctx, versionoperator.AcksNamespace, versionoperator.Acks, gate, "true")
}

// Acknowledged returns the gates that any client has acknowledged.
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

// change patches an object like an administrator.
func (v *Versions) change(ctx context.Context, name string, object client.Object, change func(client.Object)) error {
	if err := v.get(ctx, "", name, object); err != nil {
		return err
	}
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return errors.New("the copy is no client.Object")
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

// put writes one key of a ConfigMap, which is created if it does not exist.
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
