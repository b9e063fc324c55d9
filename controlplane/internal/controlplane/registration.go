package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// owns tells whether the ClusterDeployment or AgentClusterInstall of our name stands for this control plane. Labels decide, where there are some. Somebody may have
// stripped them, as GitOps tools do that do not know them; then it is decided by what only we write, in either of the two, for they belong together.
func (s *scope) owns(obj client.Object) bool {
	switch {
	case kube.IsNil(obj):
		return false
	case s.ours(obj):
		return true
	case s.labelledForAnother(obj):
		return false
	}
	return s.pairOfOurs()
}

// labelledForAnother tells whether a label names another Cluster or control plane.
func (s *scope) labelledForAnother(obj client.Object) bool {
	for key, value := range s.labels() {
		if found, labelled := obj.GetLabels()[key]; labelled && found != value {
			return true
		}
	}
	return false
}

// pairOfOurs tells whether ClusterDeployment and AgentClusterInstall name each other, and one of them bears what only we write.
func (s *scope) pairOfOurs() bool {
	d, i := s.deployment, s.install
	switch {
	case d != nil && (d.Spec.ClusterInstallRef == nil || d.Spec.ClusterInstallRef.Name != s.controlPlane.Name || s.labelledForAnother(d)):
		return false
	case i != nil && (i.Spec.ClusterDeploymentRef.Name != s.controlPlane.Name || s.labelledForAnother(i)):
		return false
	case d != nil && (s.ours(d) || d.Annotations[assisted.OpenShiftVersionAnnotation] != ""):
		return true
	}
	return i != nil && (s.ours(i) || s.ownSet(registeredSetOf(i)) != nil)
}

// foreign tells, and says, whether an object with the name of ours belongs to someone else. It may stand for a running cluster: nobody is ever told to delete it.
func (s *scope) foreign(obj client.Object, kind string) bool {
	if kube.IsNil(obj) || s.owns(obj) {
		return false
	}
	var wanted []string
	for key, value := range s.labels() {
		wanted = append(wanted, key+"="+value)
	}
	slices.Sort(wanted)
	s.block(controlplanev1.InstallationNotOursReason, fmt.Sprintf("%s %s exists and was not made for this control plane; it is left alone. Give the control plane another name, or, if it is "+
		"that of this cluster, its labels: %s", kind, obj.GetName(), strings.Join(wanted, ", ")))
	return true
}

// relabel puts labels back that somebody removed. Before the installation has begun, the registration does. A deletion needs them: once the one of the two is
// gone, nothing else may tell whose the other was.
func (r *Reconciler) relabel(ctx context.Context, s *scope) (bool, error) {
	if !s.begun() && !s.deleting() {
		return true, nil
	}
	for _, obj := range []client.Object{s.deployment, s.install} {
		if !s.owns(obj) || s.ours(obj) || !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		key, version := reconcile.Key(fmt.Sprintf("labels %T", obj), obj), obj.GetResourceVersion()
		if r.recent.Unseen(key, version) {
			s.again.In(reconcile.CacheLag)
			continue
		}
		before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, s.labels())
		obj.SetLabels(labels)
		if err := r.Client.Patch(ctx, obj, client.MergeFrom(before), fieldOwner); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("cannot put the labels of %T %s back: %w", obj, obj.GetName(), err)
		}
		r.recent.Wrote(key, version)
	}
	return true, nil
}
