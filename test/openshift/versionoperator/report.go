package versionoperator

import (
	"context"
	"fmt"
	"math"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

const (
	failingCondition  = "Failing"
	invalidCondition  = "Invalid"
	acceptedCondition = "ReleaseAccepted"
)

// report writes the status of the ClusterVersion and of the ClusterOperators.
func (o *Operator) report(ctx context.Context, v *view) error {
	if err := o.reportOperators(ctx, v); err != nil {
		return err
	}
	s := &o.state
	status := *v.version.Status.DeepCopy()
	status.ObservedGeneration, status.AvailableUpdates, status.ConditionalUpdates = v.version.Generation, s.graph.available,
		s.graph.conditional
	status.ConditionalUpdateRisks = s.graph.risks
	var records []func()
	// Unchanged content is not written again, because tests may have changed it.
	changed := func(field string, content any) bool {
		record := o.written.Changed(field, []any{v.version.UID, content})
		if record != nil {
			records = append(records, record)
		}
		return record != nil
	}
	if changed("history", s.history) {
		status.Desired, status.History = s.desired, slices.Clone(s.history)
	}
	for _, c := range s.conditions() {
		if changed(string(c.Type), c) {
			openshift.SetCondition(&status.Conditions, c)
		}
	}
	if !equality.Semantic.DeepEqual(status, v.version.Status) {
		v.version.Status = status
		if err := o.api.Status().Update(ctx, v.version); err != nil {
			return fmt.Errorf("cannot write the status of the ClusterVersion: %w", err)
		}
	}
	for _, record := range records {
		record()
	}
	return nil
}

// conditions returns the conditions of the ClusterVersion in the words of the cluster-version-operator.
func (s *state) conditions() []openshift.Condition {
	last := s.history[slices.IndexFunc(s.history, completed)]
	invalid := openshift.Condition{Type: invalidCondition}
	if s.invalid != "" {
		invalid.Status, invalid.Reason, invalid.Message = configv1.ConditionTrue, "InvalidClusterVersion", s.invalid
	}
	failing := s.failing
	if failing.Type == "" {
		failing = openshift.Condition{Type: failingCondition, Status: configv1.ConditionFalse}
	}
	return []openshift.Condition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, Message: "Done applying " + last.Version},
		failing, s.progress(), s.graph.condition, s.accepted(), s.upgradeable, invalid,
		{
			Type: "ImplicitlyEnabledCapabilities", Status: configv1.ConditionFalse, Reason: "AsExpected",
			Message: "Capabilities match configured spec",
		},
	}
}

func (s *state) progress() openshift.Condition {
	f := openshift.Condition{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue}
	version := s.desired.Version
	if s.invalid != "" {
		f.Reason = "InvalidClusterVersion"
	}
	share := 0.0
	if s.total > 0 {
		share = math.Trunc(100 * float64(s.doneManifests()) / float64(s.total*manifests))
	}
	working := fmt.Sprintf("Working towards %s: %d of %d done (%.0f%% complete)", version, s.doneManifests(), s.total*manifests, share)
	switch {
	case !s.progressing() && s.invalid != "":
		f.Status, f.Message = configv1.ConditionFalse, fmt.Sprintf("Stopped at %s: the cluster version is invalid", version)
	case !s.progressing():
		f.Status, f.Message = configv1.ConditionFalse, "Cluster version is "+version
	case s.failing.Status == configv1.ConditionTrue:
		problem := map[string]string{"ClusterOperatorDegraded": "degraded", "ClusterOperatorNotAvailable": "not available"}[s.failing.Reason]
		f.Reason, f.Message = s.failing.Reason, fmt.Sprintf("Unable to apply %s: the cluster operator %s is %s", version, s.current, problem)
	case s.failing.Status == configv1.ConditionUnknown:
		f.Reason, f.Message = s.failing.Reason, working+", "+s.failing.Message
	case s.invalid != "":
		f.Message = fmt.Sprintf("Reconciling %s: the cluster version is invalid", version)
	case s.current == "":
		f.Message = "Working towards " + version
	default:
		f.Reason, f.Message = "ClusterOperatorUpdating", working+", waiting on "+s.current
	}
	return f
}

// doneManifests returns the number of applied manifests of the payload, which lack one of the current ClusterOperator.
func (s *state) doneManifests() int {
	done := s.done * manifests
	if s.current != "" && s.done < s.total {
		done += manifests - 1
	}
	return done
}

func (s *state) accepted() openshift.Condition {
	f := openshift.Condition{Type: acceptedCondition}
	switch {
	case s.loading.update.Image == "":
		f.Status, f.Reason = configv1.ConditionTrue, stepLoaded
		f.Message = fmt.Sprintf("Payload loaded version=%q image=%q architecture=\"amd64\"", s.desired.Version, s.desired.Image)
	case s.loading.refused != nil:
		f.Status, f.Reason, f.Message = configv1.ConditionFalse, s.loading.refused.step, s.loading.refused.message
	default:
		f.Status, f.Reason = configv1.ConditionUnknown, stepRetrieve
		f.Message = fmt.Sprintf("Retrieving and verifying payload version=%q image=%q", s.loading.update.Version, s.loading.update.Image)
	}
	return f
}

// reportOperators writes the conditions of machine-config, and the faults of other ClusterOperators.
func (o *Operator) reportOperators(ctx context.Context, v *view) error {
	if !slices.ContainsFunc(v.operators, func(c configv1.ClusterOperator) bool { return c.Name == openshift.MachineConfig }) {
		return o.createMachineConfig(ctx)
	}
	for i := range v.operators {
		operator := &v.operators[i]
		var conditions []openshift.Condition
		switch operator.Name {
		case openshift.MachineConfig:
			conditions = o.machineConfigConditions(v, operator)
		case openshift.KubeAPIServer:
			conditions = v.kubeletConditions(operator)
		}
		f := v.faults[operator.Name]
		switch f.kind {
		case degraded:
			conditions = append(conditions, openshift.NewCondition(configv1.OperatorDegraded, true, "Simulated", f.message))
		case unavailable:
			conditions = append(conditions, openshift.NewCondition(configv1.OperatorAvailable, false, "StaticPods_ZeroNodesActive",
				"StaticPodsAvailable: 0 nodes are active"))
		case notUpgradeable:
			conditions = append(conditions, openshift.NewCondition(configv1.OperatorUpgradeable, false, "Simulated", f.message))
		case fixed:
			if operator.Name != openshift.MachineConfig {
				conditions = append(conditions, openshift.NewCondition(configv1.OperatorAvailable, true, "AsExpected", ""),
					openshift.NewCondition(configv1.OperatorDegraded, false, "AsExpected", ""),
					openshift.NewCondition(configv1.OperatorUpgradeable, true, "AsExpected", ""))
			}
		}
		// The condition of a fault replaces the one before it.
		if err := openshift.WriteConditions(ctx, o.api, operator, conditions); err != nil {
			return err
		}
		if f.kind == fixed {
			o.change(func(s *settings) {
				if s.faults[operator.Name].kind == fixed {
					delete(s.faults, operator.Name)
				}
			})
		}
	}
	return nil
}

func (o *Operator) createMachineConfig(ctx context.Context) error {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: openshift.MachineConfig}}
	if err := o.api.Create(ctx, operator); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("cannot create ClusterOperator %s: %w", openshift.MachineConfig, err)
	}
	if err := o.api.Get(ctx, client.ObjectKeyFromObject(operator), operator); err != nil {
		return fmt.Errorf("cannot read ClusterOperator %s: %w", openshift.MachineConfig, err)
	}
	return o.setVersion(ctx, operator, o.state.configured, "")
}

func (o *Operator) machineConfigConditions(v *view, operator *configv1.ClusterOperator) []openshift.Condition {
	s := &o.state
	available := openshift.NewCondition(configv1.OperatorAvailable, true, "AsExpected",
		"Cluster has deployed "+operatorVersion(operator))
	progressing := openshift.NewCondition(configv1.OperatorProgressing, false, "AsExpected",
		"Cluster version is "+operatorVersion(operator))
	degradedness := openshift.NewCondition(configv1.OperatorDegraded, false, "AsExpected", "")
	upgradeable := openshift.NewCondition(configv1.OperatorUpgradeable, true, "AsExpected", "")
	if s.configured != operatorVersion(operator) {
		progressing.Status, progressing.Reason, progressing.Message = configv1.ConditionTrue, "", "Working towards "+s.configured
	}
	for _, pool := range v.pools {
		if poolCondition(pool, machineconfigv1.MachineConfigPoolUpdating) {
			upgradeable.Status, upgradeable.Reason = configv1.ConditionFalse, "PoolUpdating"
			upgradeable.Message = "One or more machine config pools are updating, please see `oc get mcp` for further details"
		}
	}
	if pool := v.degradedPool(); pool != nil {
		upgradeable.Status, upgradeable.Reason = configv1.ConditionFalse, "DegradedPool"
		upgradeable.Message = "One or more machine config pools are degraded, please see `oc get mcp` for further details " +
			"and resolve before upgrading"
		degradedness.Status, degradedness.Reason = configv1.ConditionTrue, "MachineConfigPoolsFailed"
		degradedness.Message = fmt.Sprintf("Failed to resync %s because: error MachineConfigPool %s is not ready, retrying. "+
			"Status: (pool degraded: true total: %d, ready %d, updated: %d, unavailable: %d)",
			s.configured, pool.Name, pool.Status.MachineCount, pool.Status.ReadyMachineCount, pool.Status.UpdatedMachineCount,
			pool.Status.UnavailableMachineCount)
	}
	return []openshift.Condition{available, progressing, degradedness, upgradeable}
}
