package writer

import (
	"context"
	"maps"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// KeepIgnored leaves the annotations with ignored validations as they are while assisted-service refuses other ones. After
// a refusal the service neither writes the credentials of the cluster nor adds hosts (applyClusterInstallAnnotations in its
// clusterdeployments_controller.go). No admission webhook protects the annotations, unlike the spec. Therefore
// KeepIgnored reads the AgentClusterInstall past the cache before a change. wanted is to be applied with by.
func (w *Writer) KeepIgnored(ctx context.Context, s *scope.Scope, by *apply.Applier, wanted client.Object) error {
	if s.Install == nil {
		return nil
	}
	kept := registration.KeptIgnored(wanted, s.Install, func(path ...string) bool { return by.Owns(s.Install, path...) })
	if maps.Equal(kept, wanted.GetAnnotations()) {
		return nil
	}
	if registration.MayIgnore(s.InstallationState, s.Progress) {
		install, err := kube.Read(ctx, w.Live, client.ObjectKeyFromObject(s.Install), &hiveext.AgentClusterInstall{})
		if err != nil || install != nil && registration.MayIgnore(s.InstallationState, assisted.Observe(install)) {
			return err
		}
	}
	wanted.SetAnnotations(kept)
	return nil
}
