package installation

import (
	"context"
	"fmt"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// holdOwner owns spec.holdInstallation of an AgentClusterInstall while Agents of other namespaces are bound, and while the
// cluster is being deleted. It differs from the owner of the registration. So the end of the hold changes no other field,
// and a hold of the spec or of another client stays.
const holdOwner = writer.FieldOwner + "-hold"

// holdInstallation holds the installation and returns true. If the installation has begun, assisted-service rejects the hold.
// Then it returns false, and reports the reason for the hold. It also returns false if the AgentClusterInstall is
// deleted, and the cache still shows it.
func (r *Registrar) holdInstallation(ctx context.Context, s *scope.Scope, because string) (held bool, err error) {
	key := reconcile.Key("hold", s.Install)
	if left := r.writer.Recent.Pending(key, s.Install.ResourceVersion); left > 0 {
		s.Again.In(left)
		return true, nil
	}
	err = r.applyHold(ctx, s.Install, map[string]any{"holdInstallation": true})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		s.Again.In(reconcile.CacheLag) // it is deleted: an apply with the UID of a deleted object is a conflict
		return false, nil
	case kube.IsRefused(err):
		// The hold protects the disks of hosts: the interval does not grow, unlike that of other refused requests.
		s.Again.In(reconcile.RefusedDelay)
		s.Block(controlplanev1.InstallationRejectedReason,
			fmt.Sprintf("The provider cannot block the installation: %s. %s", assisted.RedactURLs(err.Error()), because))
		return false, nil
	case err != nil:
		return false, err
	}
	r.writer.Recent.Record(key, s.Install.ResourceVersion)
	return true, nil
}

// withdrawHold withdraws the hold of holdInstallation from an AgentClusterInstall that was registered as wanted. A hold
// of another client stays.
func (r *Registrar) withdrawHold(ctx context.Context, s *scope.Scope, wanted *hiveext.AgentClusterInstall) error {
	if s.Install == nil || !s.Install.Spec.HoldInstallation || wanted.Spec.HoldInstallation {
		return nil
	}
	return r.applyHold(ctx, s.Install, nil)
}

// applyHold applies a spec to an AgentClusterInstall as holdOwner. Nil withdraws the fields that holdOwner applied before.
func (r *Registrar) applyHold(ctx context.Context, install *hiveext.AgentClusterInstall, spec map[string]any) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(hiveext.GroupVersion.WithKind("AgentClusterInstall"))
	u.SetNamespace(install.Namespace)
	u.SetName(install.Name)
	u.SetUID(install.UID) // never creates it again
	if spec != nil {
		u.Object["spec"] = spec
	}
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), holdOwner, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("cannot change spec.holdInstallation of AgentClusterInstall %s: %w", install.Name, err)
	}
	return nil
}
