package controlplane

import (
	"cmp"
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
	told := s.Install.Annotations[bootstrapv1.MachineConfigServerCAAnnotation]
	wanted := cmp.Or(s.Workload.ServerCA, told)
	if !s.AwaitsHosts() {
		wanted = ""
	}
	if wanted == told {
		return true, nil
	}
	after := s.Install.DeepCopy()
	if wanted == "" {
		delete(after.Annotations, bootstrapv1.MachineConfigServerCAAnnotation)
	} else {
		annotations.AddAnnotations(after, map[string]string{bootstrapv1.MachineConfigServerCAAnnotation: wanted})
	}
	if err := kube.PatchMetadata(ctx, r.Client, s.Install, after, FieldOwner); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot tell the certificates of the machine config server: %w", err)
	}
	return true, nil
}
