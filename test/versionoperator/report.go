package versionoperator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	failingCondition  = "Failing"
	invalidCondition  = "Invalid"
	acceptedCondition = "ReleaseAccepted"
)

// finding is one condition; without a status: it is not to be there.
type finding struct {
	Type            string
	Status          metav1.ConditionStatus
	Reason, Message string
}

// report writes the status of the ClusterVersion and what the ClusterOperators say.
func (o *Operator) report(ctx context.Context, v *view) error {
	if err := o.reportOperators(ctx, v); err != nil {
		return err
	}
	s := &o.state
	status := *v.version.Status.DeepCopy()
	status.ObservedGeneration, status.AvailableUpdates, status.ConditionalUpdates = v.version.Generation, s.graph.available,
		s.graph.conditional
	writes := map[string]string{}
	// What was written and is still so is not written again: what others made of it meanwhile is theirs, tests do that.
	news := func(part string, content any) bool {
		encoded, err := json.Marshal([]any{v.version.UID, content})
		if err != nil || o.written[part] == string(encoded) {
			return false
		}
		writes[part] = string(encoded)
		return true
	}
	if news("history", s.history) {
		status.Desired, status.History = s.desired, slices.Clone(s.history)
	}
	for _, f := range s.findings() {
		if news(f.Type, f) {
			status.Conditions, _ = merge(status.Conditions, f)
		}
	}
	if !equality.Semantic.DeepEqual(status, v.version.Status) {
		v.version.Status = status
		if err := o.api.Status().Update(ctx, v.version); err != nil {
			return fmt.Errorf("cannot write the status of the ClusterVersion: %w", err)
		}
	}
	maps.Copy(o.written, writes)
	return nil
}

// findings are the conditions of the ClusterVersion, in the words of the cluster-version-operator.
func (s *state) findings() []finding {
	last := s.history[slices.IndexFunc(s.history, completed)]
	invalid := finding{Type: invalidCondition}
	if s.invalid != "" {
		invalid.Status, invalid.Reason, invalid.Message = metav1.ConditionTrue, "InvalidClusterVersion", s.invalid
	}
	failing := s.failing
	if failing.Type == "" {
		failing = finding{Type: failingCondition, Status: metav1.ConditionFalse}
	}
	return []finding{
		{Type: string(configv1.OperatorAvailable), Status: metav1.ConditionTrue, Message: "Done applying " + last.Version},
		failing, s.progress(), s.graph.condition, s.accepted(), s.upgradeable, invalid,
		{
			Type: "ImplicitlyEnabledCapabilities", Status: metav1.ConditionFalse, Reason: "AsExpected",
			Message: "Capabilities match configured spec",
		},
	}
}

func (s *state) progress() finding {
	f := finding{Type: string(configv1.OperatorProgressing), Status: metav1.ConditionTrue}
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
		f.Status, f.Message = metav1.ConditionFalse, fmt.Sprintf("Stopped at %s: the cluster version is invalid", version)
	case !s.progressing():
		f.Status, f.Message = metav1.ConditionFalse, "Cluster version is "+version
	case s.failing.Status == metav1.ConditionTrue:
		what := map[string]string{"ClusterOperatorDegraded": "degraded", "ClusterOperatorNotAvailable": "not available"}[s.failing.Reason]
		f.Reason, f.Message = s.failing.Reason, fmt.Sprintf("Unable to apply %s: the cluster operator %s is %s", version, s.current, what)
	case s.failing.Status == metav1.ConditionUnknown:
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

// doneManifests are those of the payload that are applied: all but one of the ClusterOperator that the update has come to.
func (s *state) doneManifests() int {
	done := s.done * manifests
	if s.current != "" && s.done < s.total {
		done += manifests - 1
	}
	return done
}

func (s *state) accepted() finding {
	f := finding{Type: acceptedCondition}
	switch {
	case s.loading.update.Image == "":
		f.Status, f.Reason = metav1.ConditionTrue, stepLoaded
		f.Message = fmt.Sprintf("Payload loaded version=%q image=%q architecture=\"amd64\"", s.desired.Version, s.desired.Image)
	case s.loading.refused != nil:
		f.Status, f.Reason, f.Message = metav1.ConditionFalse, s.loading.refused.step, s.loading.refused.message
	default:
		f.Status, f.Reason = metav1.ConditionUnknown, stepRetrieve
		f.Message = fmt.Sprintf("Retrieving and verifying payload version=%q image=%q", s.loading.update.Version, s.loading.update.Image)
	}
	return f
}

// merge puts a finding into conditions, and reports whether that changes them.
func merge(conditions []configv1.ClusterOperatorStatusCondition, f finding) (merged []configv1.ClusterOperatorStatusCondition,
	changed bool,
) {
	i := slices.IndexFunc(conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return string(c.Type) == f.Type })
	wanted := configv1.ClusterOperatorStatusCondition{
		Type: configv1.ClusterStatusConditionType(f.Type), Status: configv1.ConditionStatus(f.Status),
		LastTransitionTime: metav1.Now(), Reason: f.Reason, Message: f.Message,
	}
	switch {
	case f.Status == "" && i < 0:
		return conditions, false
	case f.Status == "":
		return slices.Delete(conditions, i, i+1), true
	case i < 0:
		return append(conditions, wanted), true
	}
	if conditions[i].Status == wanted.Status {
		wanted.LastTransitionTime = conditions[i].LastTransitionTime
	}
	if equality.Semantic.DeepEqual(conditions[i], wanted) {
		return conditions, false
	}
	conditions[i] = wanted
	return conditions, true
}

// reportOperators writes what machine-config says, and what was done to the others.
func (o *Operator) reportOperators(ctx context.Context, v *view) error {
	if !slices.ContainsFunc(v.operators, func(c configv1.ClusterOperator) bool { return c.Name == machineConfig }) {
		return o.createMachineConfig(ctx)
	}
	for i := range v.operators {
		operator := &v.operators[i]
		var findings []finding
		switch operator.Name {
		case machineConfig:
			findings = o.machineConfigFindings(v, operator)
		case kubeAPIServer:
			findings = v.kubeletFindings(operator)
		}
		f := v.faults[operator.Name]
		switch f.kind {
		case degraded:
			findings = append(findings, finding{string(configv1.OperatorDegraded), metav1.ConditionTrue, "Simulated", f.message})
		case unavailable:
			findings = append(findings, finding{
				string(configv1.OperatorAvailable), metav1.ConditionFalse, "StaticPods_ZeroNodesActive",
				"StaticPodsAvailable: 0 nodes are active",
			})
		case notUpgradeable:
			findings = append(findings, finding{string(configv1.OperatorUpgradeable), metav1.ConditionFalse, "Simulated", f.message})
		case mended:
			if operator.Name != machineConfig {
				findings = append(findings, finding{string(configv1.OperatorAvailable), metav1.ConditionTrue, "AsExpected", ""},
					finding{string(configv1.OperatorDegraded), metav1.ConditionFalse, "AsExpected", ""},
					finding{string(configv1.OperatorUpgradeable), metav1.ConditionTrue, "AsExpected", ""})
			}
		}
		if err := o.writeFindings(ctx, operator, findings); err != nil {
			return err
		}
		if f.kind == mended {
			o.change(func(s *settings) {
				if s.faults[operator.Name].kind == mended {
					delete(s.faults, operator.Name)
				}
			})
		}
	}
	return nil
}

func (o *Operator) writeFindings(ctx context.Context, operator *configv1.ClusterOperator, findings []finding) error {
	changed := false
	for i, f := range findings {
		if slices.ContainsFunc(findings[i+1:], func(later finding) bool { return later.Type == f.Type }) {
			continue // what was done to it counts
		}
		merged, is := merge(operator.Status.Conditions, f)
		operator.Status.Conditions, changed = merged, changed || is
	}
	if !changed {
		return nil
	}
	if err := o.api.Status().Update(ctx, operator); err != nil {
		return fmt.Errorf("cannot write the status of ClusterOperator %s: %w", operator.Name, err)
	}
	return nil
}

func (o *Operator) createMachineConfig(ctx context.Context) error {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: machineConfig}}
	if err := o.api.Create(ctx, operator); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("cannot create ClusterOperator %s: %w", machineConfig, err)
	}
	if err := o.api.Get(ctx, client.ObjectKeyFromObject(operator), operator); err != nil {
		return fmt.Errorf("cannot read ClusterOperator %s: %w", machineConfig, err)
	}
	return o.setVersion(ctx, operator, o.state.configured)
}

func (o *Operator) machineConfigFindings(v *view, operator *configv1.ClusterOperator) []finding {
	s := &o.state
	available := finding{
		string(configv1.OperatorAvailable), metav1.ConditionTrue, "AsExpected",
		"Cluster has deployed " + operatorVersion(operator),
	}
	progressing := finding{
		string(configv1.OperatorProgressing), metav1.ConditionFalse, "AsExpected",
		"Cluster version is " + operatorVersion(operator),
	}
	degradedness := finding{string(configv1.OperatorDegraded), metav1.ConditionFalse, "AsExpected", ""}
	upgradeable := finding{string(configv1.OperatorUpgradeable), metav1.ConditionTrue, "AsExpected", ""}
	if s.configured != operatorVersion(operator) {
		progressing.Status, progressing.Reason, progressing.Message = metav1.ConditionTrue, "", "Working towards "+s.configured
	}
	for _, pool := range v.pools {
		if poolCondition(pool, machineconfigv1.MachineConfigPoolUpdating) {
			upgradeable.Status, upgradeable.Reason = metav1.ConditionFalse, "PoolUpdating"
			upgradeable.Message = "One or more machine config pools are updating, please see `oc get mcp` for further details"
		}
	}
	if pool := v.degradedPool(); pool != nil {
		upgradeable.Status, upgradeable.Reason = metav1.ConditionFalse, "DegradedPool"
		upgradeable.Message = "One or more machine config pools are degraded, please see `oc get mcp` for further details " +
			"and resolve before upgrading"
		degradedness.Status, degradedness.Reason = metav1.ConditionTrue, "MachineConfigPoolsFailed"
		degradedness.Message = fmt.Sprintf("Failed to resync %s because: error MachineConfigPool %s is not ready, retrying. "+
			"Status: (pool degraded: true total: %d, ready %d, updated: %d, unavailable: %d)",
			s.configured, pool.Name, pool.Status.MachineCount, pool.Status.ReadyMachineCount, pool.Status.UpdatedMachineCount,
			pool.Status.UnavailableMachineCount)
	}
	return []finding{available, progressing, degradedness, upgradeable}
}
