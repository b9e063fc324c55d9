package installation

import (
	"cmp"
	"context"
	"maps"

	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Publish writes what the bootstrap provider needs to know of the cluster into annotations of the AgentClusterInstall. All
// changes are one request, which does not depend on the resource version. When an installation ends, assisted-service writes
// to the object several times a second, and each of these writes would cause a conflict.
func (w *MetadataWriter) Publish(ctx context.Context, s *scope.Scope) (bool, error) {
	if !ownership.OwnsInstall(s.Facts) || !s.Install.DeletionTimestamp.IsZero() {
		return true, nil
	}
	changes := published(s)
	maps.DeleteFunc(changes, func(key string, value *string) bool {
		stored, found := s.Install.Annotations[key]
		return found == (value != nil) && stored == ptr.Deref(value, "")
	})
	if len(changes) == 0 {
		return true, nil
	}
	key := reconcile.Key("publish", s.Install)
	if left := w.writer.Recent.Pending(key, s.Install.ResourceVersion); left > 0 {
		s.Again.In(left)
		return true, nil
	}
	err := w.writer.Annotate(ctx, key, s.Install, changes)
	return err == nil, err
}

// published returns the annotations that an AgentClusterInstall should have. A nil value stands for an annotation that it
// should not have. Other annotations stay as they are.
func published(s *scope.Scope) map[string]*string {
	wanted := map[string]*string{}
	if s.Begun && s.Arbiters() > 0 { // before, the registration writes the annotation
		wanted[bootstrapv1.ClusterWithArbiterAnnotation] = ptr.To("")
	}
	if !s.Installed() {
		return wanted
	}
	// Hosts that join boot with the discovery image of the release that the cluster runs.
	if runs := cmp.Or(s.Workload.OpenShiftVersion, s.ControlPlane.Status.DistributionVersion); runs != "" {
		wanted[bootstrapv1.RunningReleaseAnnotation] = &runs
	}
	// Hosts that join trust the certificates of the machine config server. The last certificates stay while the cluster
	// does not answer.
	switch {
	case !s.ExpectsHosts():
		wanted[bootstrapv1.MachineConfigServerCAAnnotation] = nil
	case s.Workload.ServerCA != "":
		wanted[bootstrapv1.MachineConfigServerCAAnnotation] = &s.Workload.ServerCA
	}
	return wanted
}
