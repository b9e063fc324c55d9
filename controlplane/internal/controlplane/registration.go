package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// foreign tells, and says, whether an object with the name of ours belongs to someone else. It may stand for a running cluster: nobody is ever told to delete it.
func (s *scope) foreign(obj client.Object, kind string) bool {
	if kube.IsNil(obj) || slices.Contains(s.registration(), obj) {
		return false
	}
	var wanted []string
	for key, value := range s.Labels() {
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
	if !s.Begun && !s.Deleting() {
		return true, nil
	}
	for _, obj := range s.registration() {
		if s.Ours(obj) || !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		key, version := reconcile.Key(fmt.Sprintf("labels %T", obj), obj), obj.GetResourceVersion()
		if r.recent.Unseen(key, version) {
			s.again.In(reconcile.CacheLag)
			continue
		}
		after := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy
		labels := after.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, s.Labels())
		after.SetLabels(labels)
		if err := r.Client.Patch(ctx, after, client.MergeFrom(obj), fieldOwner); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("cannot put the labels of %T %s back: %w", obj, obj.GetName(), err)
		}
		r.recent.Wrote(key, version)
		if deployment, ok := after.(*hivev1.ClusterDeployment); ok {
			s.relabelled = deployment
		}
	}
	return true, nil
}
