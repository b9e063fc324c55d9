package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// tellServerCA tells the bootstrap provider, while hosts are to join the installed cluster, by which certificates they recognise its machine config server. What the cluster said last stands
// while it does not answer.
func (r *Reconciler) tellServerCA(ctx context.Context, s *scope) (bool, error) {
	if !s.Installed() || !s.OwnsInstall() || !s.Install.DeletionTimestamp.IsZero() {
		return true, nil
	}
	after := s.Install.DeepCopy()
	switch {
	case !s.AwaitsHosts():
		delete(after.Annotations, bootstrapv1.MachineConfigServerCAAnnotation)
	case s.Workload.ServerCA != "":
		annotations.AddAnnotations(after, map[string]string{bootstrapv1.MachineConfigServerCAAnnotation: s.Workload.ServerCA})
	}
	if err := kube.PatchMetadata(ctx, r.Client, s.Install, after, FieldOwner); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot tell the certificates of the machine config server: %w", err)
	}
	return true, nil
}
