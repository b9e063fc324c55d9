// Package protection protects Machines from MachineHealthChecks while their hosts are being installed.
package protection

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Protector annotates Machines.
type Protector struct {
	client client.Client
	// written is the last written protection, by config.
	written *reconcile.WriteCache[types.NamespacedName, bool]
}

// New returns a Protector.
func New(c client.Client, clk clock.PassiveClock) *Protector {
	return &Protector{client: c, written: reconcile.NewWriteCache[types.NamespacedName, bool](clk)}
}

// Forget drops the record of a deleted config.
func (p *Protector) Forget(config types.NamespacedName) { p.written.Forget(config) }

// Value is the value of our annotation cluster.x-k8s.io/skip-remediation on Machines. Any other value is
// foreign.
const Value = writer.FieldOwner

// Protect prevents a MachineHealthCheck from deleting the Machine while its host is being installed. The
// installation takes 40 minutes, and a MachineHealthCheck misses a Node after ten minutes (the default). The host
// would be wiped and the next host taken, forever.
func (p *Protector) Protect(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Machine == nil {
		return true, nil
	}
	return true, p.Set(ctx, s, wantsProtection(s))
}

// Set adds or removes our annotation. An annotation of a user is left alone.
func (p *Protector) Set(ctx context.Context, s *scope.Scope, wanted bool) error {
	value, exists := s.Machine.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	if last, newer := p.written.NewerThan(s.Key(), s.Machine.ResourceVersion); newer && last == wanted {
		return nil // the cache does not have our last write yet
	}
	// Cluster API writes to a new Machine at the same time: the cache may show its write first.
	if last, left := p.written.Pending(s.Key(), s.Machine.ResourceVersion); left > 0 && last == wanted {
		s.Again.In(left)
		return nil
	}
	switch {
	case !s.Machine.DeletionTimestamp.IsZero():
		return nil
	case wanted && !exists:
		return p.addProtection(ctx, s)
	case !wanted && value == Value:
		return p.removeProtection(ctx, s)
	}
	return nil
}

// wantsProtection reports whether the Machine needs the protection. The protection lasts from the creation of the
// boot image until the host is installed or cannot be installed. The end of the installation is known before
// Cluster API knows the Node. Until then a MachineHealthCheck misses the Node. An existing annotation stays until
// then: the manager may have ended between the protection and the bootstrap data.
func wantsProtection(s *scope.Scope) bool {
	ours := s.Machine.Annotations[clusterv1.MachineSkipRemediationAnnotation] == Value
	recorded := s.Recorded(bootstrapv1.HostInstalledCondition)
	switch {
	case recorded != nil && recorded.Reason == bootstrapv1.HostInstallationFailedReason:
		return false
	case s.IsFinished():
		return ours && !s.Machine.Status.NodeRef.IsDefined()
	}
	return ours || s.DataHandedOut()
}

// addProtection applies the annotation without force. If a user has annotated the Machine meanwhile, the API
// server refuses the write, and the annotation of the user stays.
func (p *Protector) addProtection(ctx context.Context, s *scope.Scope) error {
	desired := &unstructured.Unstructured{}
	desired.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	desired.SetNamespace(s.Machine.Namespace)
	desired.SetName(s.Machine.Name)
	desired.SetUID(s.Machine.UID)
	desired.SetAnnotations(map[string]string{clusterv1.MachineSkipRemediationAnnotation: Value})
	err := p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), client.FieldOwner(writer.FieldOwner))
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot protect the Machine from remediation: %w", err)
	}
	p.written.RecordStored(s.Key(), true, desired.GetResourceVersion(), s.Machine.ResourceVersion)
	return nil
}

// removeProtection removes the annotation with a patch. After clusterctl move or a restore we do not own the
// field, and cannot withdraw the field by server-side apply.
func (p *Protector) removeProtection(ctx context.Context, s *scope.Scope) error {
	const path = "/metadata/annotations/cluster.x-k8s.io~1skip-remediation"
	patch := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/uid","value":%q},{"op":"test","path":%q,"value":%q},{"op":"remove","path":%q}]`,
		s.Machine.UID, path, Value, path)
	after := s.Machine.DeepCopy()
	err := p.client.Patch(ctx, after, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(writer.FieldOwner))
	// Invalid means that the annotation is not ours anymore.
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot end the protection of the Machine from remediation: %w", err)
	}
	p.written.RecordStored(s.Key(), false, after.ResourceVersion, s.Machine.ResourceVersion)
	return nil
}
