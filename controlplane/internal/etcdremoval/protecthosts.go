package etcdremoval

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// etcdMember is the value of the annotation that protects an infrastructure machine from deletion. The admission policy reads only the key.
const etcdMember = "etcd-member"

// Protect keeps the annotation that protects an infrastructure machine from deletion in step with the hook of
// its Machine. Without the hook Cluster API core deletes the infrastructure machine itself. The admission
// policy would refuse that deletion while the annotation exists.
func (h *Hooks) Protect(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.ClusterDeleting() {
		return true, nil // Release ends the protection together with the hooks
	}
	var errs []error
	for _, m := range protectable(s) {
		if left := h.writer.Recent.Pending(HookKey(m), m.ResourceVersion); left > 0 {
			s.Again.In(left) // whether the Machine has the hook is not known before the cache has it
			continue
		}
		_, err := h.protect(ctx, s, m, removal.HasHook(m))
		errs = append(errs, err)
	}
	return true, errors.Join(errs...)
}

// protectable returns the Machines whose infrastructure machine may have, or need, the protection. These are
// the Machines of the control plane, and those that were removed from it with the hook. The infrastructure
// machines of other workers are not read.
func protectable(s *scope.Scope) []*clusterv1.Machine {
	machines := append([]*clusterv1.Machine(nil), s.Machines...)
	for _, m := range s.Workers {
		if removal.HasHook(m) || !m.DeletionTimestamp.IsZero() {
			machines = append(machines, m)
		}
	}
	return machines
}

// unprotect ends the protection. It returns false as long as the cache lags behind a write of ours: the hook must
// not be dropped before.
func (h *Hooks) unprotect(ctx context.Context, s *scope.Scope, m *clusterv1.Machine) (bool, error) {
	return h.protect(ctx, s, m, false)
}

// protect adds or removes the annotation. It returns false when the cache lags behind a write of ours.
func (h *Hooks) protect(ctx context.Context, s *scope.Scope, m *clusterv1.Machine, protect bool) (bool, error) {
	infra, err := kube.InfraMachine(ctx, h.client, m)
	if err != nil || infra == nil {
		return err == nil, err
	}
	if left := h.writer.Recent.Pending(protectionKey(infra), infra.GetResourceVersion()); left > 0 {
		s.Again.In(left)
		return false, nil
	}
	_, isProtected := infra.GetAnnotations()[controlplanev1.DeleteProtectionAnnotation]
	if isProtected == protect || protect && !infra.GetDeletionTimestamp().IsZero() {
		return true, nil
	}
	return true, h.annotateProtection(ctx, infra, protect)
}

// annotateProtection writes to the infrastructure machine that was read, not to a later one of its name.
func (h *Hooks) annotateProtection(ctx context.Context, infra *unstructured.Unstructured, protect bool) error {
	annotation := map[string]*string{controlplanev1.DeleteProtectionAnnotation: nil}
	if protect {
		annotation[controlplanev1.DeleteProtectionAnnotation] = ptr.To(etcdMember)
	}
	if err := h.writer.Annotate(ctx, protectionKey(infra), infra, annotation); err != nil {
		return fmt.Errorf("cannot write the protection: %w", err)
	}
	return nil
}

func protectionKey(infra *unstructured.Unstructured) string {
	return reconcile.Key("protection "+infra.GetKind(), infra)
}
