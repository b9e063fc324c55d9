package versionoperator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// manifests is the number of manifests of each ClusterOperator in a payload. The progress counts manifests.
const manifests = 30

// state is the state of the cluster-version-operator. It begins with the status of the ClusterVersion.
type state struct {
	adopted, prepared bool
	desired           configv1.Release
	history           []configv1.UpdateHistory
	// loading is the last requested payload, and graph the answer of the update service. invalid is the error in the
	// request, and upgradeable the condition that blocks minor upgrades.
	loading     loading
	graph       graph
	invalid     string
	upgradeable openshift.Condition
	// current is the ClusterOperator that is being updated since a time. done is the number of updated ones.
	current     string
	since       time.Time
	done, total int
	failing     openshift.Condition
	// configured is the release of the machine configurations.
	configured string
}

// loading is a payload that is being retrieved.
type loading struct {
	update  configv1.Update
	since   time.Time
	refused *refusal
}

func (s *state) progressing() bool { return len(s.history) > 0 && !completed(s.history[0]) }

// adopt sets the state from the ClusterVersion: after an installation, or during the update of a former operator.
func (o *Operator) adopt(v *view) {
	s := &o.state
	if s.adopted {
		return
	}
	s.adopted, s.history = true, slices.Clone(v.version.Status.History)
	s.desired = v.version.Status.Desired
	last := s.history[slices.IndexFunc(s.history, completed)]
	s.configured = last.Version
	if !s.progressing() {
		s.desired = configv1.Release{Version: last.Version, Image: last.Image}
	}
	o.options.Log.Info("found the cluster installed", "version", last.Version, "progressing", s.progressing())
}

// prepare creates the ConfigMap for acknowledgements, as each release does.
func (o *Operator) prepare(ctx context.Context, _ *view) error {
	if o.state.prepared {
		return nil
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: GatesNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: AcksNamespace}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: AcksNamespace, Name: Acks}},
	} {
		if err := o.api.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("cannot create %s: %w", object.GetName(), err)
		}
	}
	o.state.prepared = true
	return nil
}

// takeRequest judges the request, and starts an accepted update.
func (o *Operator) takeRequest(_ context.Context, v *view) error {
	s, now := &o.state, time.Now()
	s.graph = v.updates(&v.version.Spec, s.desired, o.started)
	s.upgradeable = upgradeability(s.desired.Version, s.progressing(), v.operators, v.gates, v.acks)
	wanted := v.version.Spec.DesiredUpdate
	s.invalid = validate(wanted, v.recordsRisks, s.graph.available, s.history)
	if s.invalid != "" {
		wanted = nil
	}
	update := resolve(wanted, s.graph.available)
	if update == nil || update.Image == s.desired.Image && (update.Version == "" || update.Version == s.desired.Version) {
		// The request names the current release, or was removed.
		s.loading = loading{}
		return nil
	}
	if s.loading.update.Image != update.Image || s.loading.update.Version != update.Version || s.loading.update.Force != update.Force {
		o.options.Log.Info("another release was requested", "version", update.Version, "image", update.Image, "force", update.Force)
		s.loading = loading{update: *update, since: now}
	}
	takes := o.options.Load
	if s.loading.refused != nil {
		takes = o.options.Retry
	}
	if rest := takes - now.Sub(s.loading.since); rest > 0 {
		o.after(rest)
		return nil
	}
	release, risks, refused := v.judge(*update, cluster{desired: s.desired, history: s.history, upgradeable: s.upgradeable})
	if refused != nil {
		if s.loading.refused == nil || *s.loading.refused != *refused {
			o.options.Log.Info("refused", "step", refused.step, "reason", refused.message)
		}
		s.loading.refused, s.loading.since = refused, now
		o.after(o.options.Retry)
		return nil
	}
	o.begin(release, joined("; ", risks, v.exposure(release)), !release.Unsigned)
	s.graph = v.updates(&v.version.Spec, s.desired, o.started)
	s.upgradeable = upgradeability(s.desired.Version, true, v.operators, v.gates, v.acks)
	return nil
}

// begin starts the update to a release. It replaces an update in progress.
func (o *Operator) begin(release Release, risks string, verified bool) {
	s, now := &o.state, metav1.Now()
	o.options.Log.Info("accepted", "version", release.Version, "image", release.Image)
	if s.history[0].CompletionTime == nil {
		s.history[0].CompletionTime = &now
	}
	s.desired = release.described()
	s.history = slices.Insert(s.history, 0, configv1.UpdateHistory{
		State: configv1.PartialUpdate, StartedTime: now, Version: release.Version, Image: release.Image, Verified: verified, AcceptedRisks: risks,
	})
	s.loading, s.current, s.done, s.failing = loading{}, "", 0, openshift.Condition{}
}

// rollOut advances the update by one step: one ClusterOperator after the other.
func (o *Operator) rollOut(ctx context.Context, v *view) error {
	s := &o.state
	s.total = len(v.operators)
	if !s.progressing() {
		return nil
	}
	s.done, s.failing = 0, openshift.Condition{}
	for i := range v.operators {
		operator := &v.operators[i]
		if operatorVersion(operator) == s.desired.Version {
			s.done++
			continue
		}
		if s.current != operator.Name {
			s.current, s.since = operator.Name, time.Now()
		}
		if operator.Name == openshift.MachineConfig && s.configured != s.desired.Version {
			s.configured = s.desired.Version
			o.after(time.Millisecond) // the pools are configured next
			return nil
		}
		if rest := o.options.Operator - time.Since(s.since); rest > 0 {
			o.after(rest)
			return nil
		}
		if o.waits(v, operator) {
			if by := v.faults[operator.Name].fixedBy; by != "" && by == s.desired.Version {
				o.Recover(operator.Name) // the operator of the new release runs, and reports its version when it is not degraded
			}
			return nil
		}
		if err := o.setVersion(ctx, operator, s.desired.Version, v.kubelet(s.desired.Version)); err != nil {
			return err
		}
		s.done++
	}
	if s.total == 0 || operatorVersion(&v.operators[s.total-1]) != s.desired.Version {
		return nil // ClusterOperator machine-config does not exist yet
	}
	now := metav1.Now()
	s.history[0].State, s.history[0].CompletionTime = configv1.CompletedUpdate, &now
	s.upgradeable = upgradeability(s.desired.Version, false, v.operators, v.gates, v.acks)
	o.options.Log.Info("completed", "version", s.desired.Version)
	return nil
}

// waits reports whether the update waits for a ClusterOperator, and sets the condition Failing.
func (o *Operator) waits(v *view, operator *configv1.ClusterOperator) bool {
	s, name := &o.state, operator.Name
	failing := func(reason, message string) {
		s.failing = openshift.Condition{Type: failingCondition, Status: configv1.ConditionTrue, Reason: reason, Message: message}
	}
	if c := openshift.FindCondition(operator, configv1.OperatorAvailable); c != nil && c.Status == configv1.ConditionFalse {
		failing("ClusterOperatorNotAvailable", fmt.Sprintf("Cluster operator %s is not available", name))
		return true
	}
	if c := openshift.FindCondition(operator, configv1.OperatorDegraded); c != nil && c.Status == configv1.ConditionTrue {
		failing("ClusterOperatorDegraded", fmt.Sprintf("Cluster operator %s is degraded", name))
		return true
	}
	switch v.faults[name].kind {
	case blocked, degraded:
		return true
	case slow:
		minutes := 30
		if name == openshift.MachineConfig {
			minutes = 90
		}
		s.failing = openshift.Condition{
			Type: failingCondition, Status: configv1.ConditionUnknown, Reason: "SlowClusterOperator",
			Message: fmt.Sprintf("waiting on %s over %d minutes which is longer than expected", name, minutes),
		}
		return true
	}
	return name == openshift.MachineConfig && !o.mastersConfigured(v)
}

// operatorVersion returns the version of a ClusterOperator.
func operatorVersion(operator *configv1.ClusterOperator) string {
	for _, v := range operator.Status.Versions {
		if v.Name == "operator" {
			return v.Version
		}
	}
	return ""
}

// setVersion sets the versions of a ClusterOperator to those of a release, and does not change its conditions.
func (o *Operator) setVersion(ctx context.Context, operator *configv1.ClusterOperator, version, kubernetes string) error {
	if operator.Name == openshift.KubeAPIServer && o.options.Serve != nil {
		o.options.Serve(kubernetes)
	}
	versions, err := json.Marshal(openshift.OperandVersions(operator.Name, version, kubernetes))
	if err != nil {
		return fmt.Errorf("cannot write the versions of ClusterOperator %s: %w", operator.Name, err)
	}
	patch := fmt.Appendf(nil, `{"status":{"versions":%s}}`, versions)
	if err := o.api.Status().Patch(ctx, operator, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("cannot set the version of ClusterOperator %s: %w", operator.Name, err)
	}
	o.options.Log.Info("updated", "operator", operator.Name, "version", version)
	return nil
}
