package versionoperator

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

const (
	// MasterPool is the pool of the control plane.
	MasterPool = "master"
	// WorkerPool is the pool of Nodes without custom pool.
	WorkerPool = "worker"
	// arbiterPool is the pool of arbiters. An update waits for it as for MasterPool.
	arbiterPool = "arbiter"

	roleLabel = openshift.RoleLabel

	prefix                    = "machineconfiguration.openshift.io/"
	releaseAnnotation         = prefix + "release-image-version"
	currentAnnotation         = prefix + "currentConfig"
	desiredAnnotation         = prefix + "desiredConfig"
	stateAnnotation           = prefix + "state"
	reasonAnnotation          = prefix + "reason"
	desiredDrainAnnotation    = prefix + "desiredDrain"
	lastDrainAnnotation       = prefix + "lastAppliedDrain"
	stateDone, stateWorking   = "Done", "Working"
	stateRebooting, stateFail = "Rebooting", "Degraded"
)

// renderedName returns the name of the configuration of a pool for a release. salt distinguishes configurations of the
// same release.
func renderedName(pool, version string, salt int) string {
	sum := md5.Sum(fmt.Appendf(nil, "%s %s %d", pool, version, salt))
	return "rendered-" + pool + "-" + hex.EncodeToString(sum[:])
}

// poolOf returns the pool of a Node, or an empty string. Roles of masters and arbiters come before custom pools, and
// these before the pool of workers.
func (v *view) poolOf(node *corev1.Node) string {
	_, master := node.Labels[roleLabel+MasterPool]
	_, arbiter := node.Labels[roleLabel+arbiterPool]
	_, worker := node.Labels[roleLabel+WorkerPool]
	switch {
	case master:
		return MasterPool
	case arbiter:
		return arbiterPool
	}
	for _, name := range slices.Sorted(maps.Keys(v.pools)) {
		selector, err := metav1.LabelSelectorAsSelector(v.pools[name].Spec.NodeSelector)
		if name != MasterPool && name != WorkerPool && err == nil && selector.Matches(labels.Set(node.Labels)) {
			return name
		}
	}
	if worker {
		return WorkerPool
	}
	return ""
}

func (v *view) members(pool string) []*corev1.Node {
	var members []*corev1.Node
	for i := range v.nodes {
		if v.poolOf(&v.nodes[i]) == pool {
			members = append(members, &v.nodes[i])
		}
	}
	return members
}

// configurePools sets the configuration of the release of machine-config on each pool, and writes the status of the
// pools.
func (o *Operator) configurePools(ctx context.Context, v *view) error {
	for _, name := range []string{MasterPool, WorkerPool, arbiterPool} {
		if v.pools[name] == nil && (name != arbiterPool || len(v.members(arbiterPool)) > 0) {
			if err := o.createPool(ctx, v, name); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.pools)) {
		pool := v.pools[name]
		rendered := renderedName(name, o.state.configured, v.salt[name])
		if err := o.render(ctx, v, name, rendered); err != nil {
			return err
		}
		if pool.Spec.Configuration.Name != rendered {
			patch := fmt.Appendf(nil, `{"spec":{"configuration":{"apiVersion":%q,"kind":"MachineConfig","name":%q}}}`,
				machineconfigv1.GroupVersion.String(), rendered)
			if err := o.api.Patch(ctx, pool, client.RawPatch(types.MergePatchType, patch)); err != nil {
				return fmt.Errorf("cannot configure pool %s: %w", name, err)
			}
			o.options.Log.Info("configured", "pool", name, "config", rendered)
		}
		status := poolStatus(pool, v.members(name))
		if equality.Semantic.DeepEqual(status, pool.Status) {
			continue
		}
		pool.Status = status
		if err := o.api.Status().Update(ctx, pool); err != nil {
			return fmt.Errorf("cannot write the status of pool %s: %w", name, err)
		}
	}
	return nil
}

func (o *Operator) createPool(ctx context.Context, v *view, name string) error {
	pool := &machineconfigv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{
		Name:   name,
		Labels: map[string]string{"pools.operator.machineconfiguration.openshift.io/" + name: ""},
	}}
	pool.Spec.MachineConfigSelector = &metav1.LabelSelector{MatchLabels: map[string]string{prefix + "role": name}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{roleLabel + name: ""}}
	pool.Status.Conditions, pool.Status.CertExpirys = []machineconfigv1.MachineConfigPoolCondition{}, []machineconfigv1.CertExpiry{}
	if err := o.api.Create(ctx, pool); err != nil {
		return fmt.Errorf("cannot create pool %s: %w", name, err)
	}
	v.pools[name] = pool
	return nil
}

// render creates the configuration of a pool for the release.
func (o *Operator) render(ctx context.Context, v *view, pool, name string) error {
	if v.rendered[name] != "" {
		return nil
	}
	config := &machineconfigv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		releaseAnnotation: o.state.configured, prefix + "generated-by-controller-version": "simulated",
	}}}
	config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(v.pools[pool],
		machineconfigv1.GroupVersion.WithKind("MachineConfigPool"))}
	config.Spec.Config = runtime.RawExtension{Raw: []byte(`{"ignition":{"version":"3.5.0"}}`)}
	config.Spec.KernelArguments, config.Spec.Extensions = []string{}, []string{}
	if err := o.api.Create(ctx, config); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot render %s: %w", name, err)
	}
	v.rendered[name] = o.state.configured
	return nil
}

// poolStatus returns the status of a pool with the counts of the machine-config-operator.
func poolStatus(pool *machineconfigv1.MachineConfigPool, members []*corev1.Node) machineconfigv1.MachineConfigPoolStatus {
	status := *pool.Status.DeepCopy()
	target := pool.Spec.Configuration
	status.ObservedGeneration, status.MachineCount = pool.Generation, int32(len(members))
	status.UpdatedMachineCount, status.ReadyMachineCount, status.UnavailableMachineCount, status.DegradedMachineCount = 0, 0, 0, 0
	var failures []string
	for _, node := range members {
		if updatedTo(node, target.Name) {
			status.UpdatedMachineCount++
			if available(node) {
				status.ReadyMachineCount++
			}
		}
		if !available(node) {
			status.UnavailableMachineCount++
		}
		if node.Annotations[stateAnnotation] == stateFail {
			status.DegradedMachineCount++
			failures = append(failures, fmt.Sprintf("Node %s is reporting: %q", node.Name, node.Annotations[reasonAnnotation]))
		}
	}
	updated := status.UpdatedMachineCount == status.MachineCount && status.ReadyMachineCount == status.MachineCount &&
		status.UnavailableMachineCount == 0
	if updated {
		status.Configuration = *target.DeepCopy()
	}
	name := target.Name
	set := func(kind machineconfigv1.MachineConfigPoolConditionType, is bool, reason, message string) {
		setPoolCondition(&status, kind, is, reason, message)
	}
	set(machineconfigv1.MachineConfigPoolUpdated, updated, "",
		map[bool]string{true: "All nodes are updated with MachineConfig " + name}[updated])
	updating := !updated && !pool.Spec.Paused
	set(machineconfigv1.MachineConfigPoolUpdating, updating, "",
		map[bool]string{true: "All nodes are updating to MachineConfig " + name}[updating])
	failed := len(failures) > 0
	reason, message := "", ""
	if failed {
		reason, message = fmt.Sprintf("%d nodes are reporting degraded status on sync", len(failures)), failures[0]
	}
	set(machineconfigv1.MachineConfigPoolNodeDegraded, failed, reason, message)
	set(machineconfigv1.MachineConfigPoolRenderDegraded, false, "", "")
	set(machineconfigv1.MachineConfigPoolDegraded, failed, "", "")
	if status.CertExpirys == nil {
		status.CertExpirys = []machineconfigv1.CertExpiry{}
	}
	return status
}

func setPoolCondition(status *machineconfigv1.MachineConfigPoolStatus, kind machineconfigv1.MachineConfigPoolConditionType,
	is bool, reason, message string,
) {
	wanted := machineconfigv1.MachineConfigPoolCondition{
		Type: kind, Status: corev1.ConditionFalse,
		LastTransitionTime: metav1.Now(), Reason: reason, Message: message,
	}
	if is {
		wanted.Status = corev1.ConditionTrue
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status == wanted.Status {
			wanted.LastTransitionTime = c.LastTransitionTime
		}
		*c = wanted
		return
	}
	status.Conditions = append(status.Conditions, wanted)
}

func poolCondition(pool *machineconfigv1.MachineConfigPool, kind machineconfigv1.MachineConfigPoolConditionType) bool {
	return slices.ContainsFunc(pool.Status.Conditions, func(c machineconfigv1.MachineConfigPoolCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// degradedPool returns a degraded pool, or nil.
func (v *view) degradedPool() *machineconfigv1.MachineConfigPool {
	for _, name := range slices.Sorted(maps.Keys(v.pools)) {
		if poolCondition(v.pools[name], machineconfigv1.MachineConfigPoolDegraded) {
			return v.pools[name]
		}
	}
	return nil
}

// mastersConfigured reports whether the pools do not block the end of an update: workers may be updated later, but no
// pool may be degraded.
func (o *Operator) mastersConfigured(v *view) bool {
	if v.degradedPool() != nil {
		return false
	}
	for _, name := range []string{MasterPool, arbiterPool} {
		pool := v.pools[name]
		if pool == nil && name == arbiterPool {
			continue
		}
		if pool == nil || v.rendered[pool.Spec.Configuration.Name] != o.state.desired.Version || !poolCondition(pool,
			machineconfigv1.MachineConfigPoolUpdated) {
			return false
		}
	}
	return true
}
