package controlplane

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// infraTemplate reads the template of the infra machines, watches its kind, and makes it belong to the Cluster. That there is none is said when it is
// needed.
func (r *Reconciler) infraTemplate(ctx context.Context, s *scope) (bool, error) {
	template, err := kube.External(ctx, r.Client, s.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef, s.ControlPlane.Namespace)
	if err != nil || template == nil {
		return err == nil, err
	}
	if err := r.track(template); err != nil {
		return false, err
	}
	s.template, err = kube.Read(ctx, r.Client, client.ObjectKeyFromObject(template), template)
	if err != nil || s.template == nil || s.template.GetDeletionTimestamp() != nil {
		return err == nil, err
	}
	if err := r.ownTemplate(ctx, s); err != nil { // of a kind that the manager was given no right to, for example
		s.found.Block(status.MachineCreation, controlplanev1.MachineCreationFailedReason, err.Error())
		return false, err
	}
	return true, nil
}

// ownTemplate makes the Cluster an owner of the template, as the contract asks: clusterctl move takes along what a Cluster owns. Server-side apply would
// not do, for several clusters may share a template: applied by one field manager, the reference of one would replace that of another.
func (r *Reconciler) ownTemplate(ctx context.Context, s *scope) error {
	owner := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: s.Cluster.Name, UID: s.Cluster.UID}
	if slices.ContainsFunc(s.template.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.UID }) {
		return nil
	}
	key := reconcile.Key("owner "+s.template.GetKind(), s.template)
	if left := r.recent.Unseen(key, s.template.GetResourceVersion()); left > 0 {
		s.again.In(left)
		return nil
	}
	before := s.template.DeepCopy()
	s.template.SetOwnerReferences(util.EnsureOwnerRef(s.template.GetOwnerReferences(), owner))
	if err := kube.PatchMetadata(ctx, r.Client, before, s.template, FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot make the Cluster an owner of %s %s: %w", before.GetKind(), before.GetName(), err)
	}
	r.recent.Wrote(key, before.GetResourceVersion())
	return nil
}
