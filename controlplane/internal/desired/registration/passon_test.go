package registration

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

func TestPassedOn(t *testing.T) {
	of := func(domains ...string) map[string]string {
		all := map[string]string{}
		for _, domain := range domains {
			all[domain] = "v"
		}
		return all
	}
	theirs := []string{
		"region",
		"example.com/site",
		"hive.openshift.io/reconcile-pause",
		"agent-install.openshift.io/any",
		"siteconfig.open-cluster-management.io/owned-by",
		"cluster.open-cluster-management.io/backup",
	}
	not := []string{
		"kubectl.kubernetes.io/last-applied-configuration",
		"app.kubernetes.io/instance",
		"kubernetes.io/description",
		"argocd.argoproj.io/tracking-id",
		"meta.helm.sh/release-name",
		"helm.sh/chart",
		"kustomize.toolkit.fluxcd.io/name",
		"cluster.x-k8s.io/paused",
		"cluster.x-k8s.io/cluster-name",
		"clusterctl.cluster.x-k8s.io/block-move",
		"controlplane.cluster.x-k8s.io/released-hosts",
		"controlplane.cluster.x-k8s.io/ntp-sources",
		"bootstrap.cluster.x-k8s.io/mirrors-digest",
		"topology.cluster.x-k8s.io/owned",
		"node.k8s.io/a",
		"agent-install.openshift.io/install-config-overrides",
		"agentclusterinstalls.agent-install.openshift.io/consumer",
		"example.com/instance",
		"nothive.openshift.io/a",
		"team",
		"velero.io/restore-name",
		"hive.openshift.io.example.com/a",
	}
	g := NewWithT(t)
	from := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{
		Name: "other", Labels: of(append(theirs, not...)...), Annotations: of(append(not, theirs...)...),
	}}
	from.Annotations[controlplanev1.PassOnAnnotation] = "region, example.com/site,agent-install.openshift.io/install-config-overrides," +
		"controlplane.cluster.x-k8s.io/ntp-sources,bootstrap.cluster.x-k8s.io/mirrors-digest"
	to := &metav1.ObjectMeta{Namespace: "lab", Name: "c1", Labels: of("own")}
	kind := hivev1.SchemeGroupVersion.WithKind("ClusterDeployment")
	u := PassedOn(from, kind, to)
	g.Expect(u.Object).To(Equal(map[string]any{
		"apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment",
		"metadata": map[string]any{"namespace": "lab", "name": "c1", "labels": anyOf(of(theirs...)), "annotations": anyOf(of(theirs...))},
	}))
	from.Labels, from.Annotations = of(not...), nil
	g.Expect(PassedOn(from, kind, to).Object["metadata"]).To(Equal(map[string]any{"namespace": "lab", "name": "c1"}))
}

// Older releases have passed on the annotations with ignored validations, and ClusterInstances set them. The field replaces
// both of them.
func TestIgnoredValidationsArePassedOnWithoutField(t *testing.T) {
	ignored := map[string]string{
		assisted.IgnoredClusterValidationsAnnotation: "dns-domain-defined", assisted.IgnoredHostValidationsAnnotation: "ntp-synced",
	}
	for situation, tc := range map[string]struct {
		field  *controlplanev1.IgnoredValidations
		passed map[string]string
	}{
		"no field": {nil, ignored},
		"a field":  {&controlplanev1.IgnoredValidations{Hosts: []string{"has-memory-for-role"}}, nil},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			from := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Annotations: ignored}}
			from.Spec.Config.IgnoredValidations = tc.field
			made := &hiveext.AgentClusterInstall{}
			PassOnAtOnce(from, made)
			g.Expect(made.Annotations).To(HaveLen(len(tc.passed)))
			g.Expect(PassedOn(from, hiveext.GroupVersion.WithKind("AgentClusterInstall"), made).GetAnnotations()).To(Equal(tc.passed))
		})
	}
}

func anyOf(all map[string]string) map[string]any {
	converted := map[string]any{}
	for key, value := range all {
		converted[key] = value
	}
	return converted
}
