package desired

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// hostWith returns the facts of a worker on a host with annotations.
func hostWith(annotations map[string]string) *facts.Facts {
	return &facts.Facts{
		Config: &bootstrapv1.OpenshiftAssistedConfig{}, Machine: &clusterv1.Machine{},
		Host: &metal3.Host{ObjectMeta: metav1.ObjectMeta{Name: "host", UID: "uid", Annotations: annotations}},
	}
}

// Annotations of a BareMetalHost are refused, or result in valid labels of a Node.
func FuzzHostSettings(f *testing.F) {
	f.Add("worker", `["--append-karg","a=b"]`, "example.com/rack", "7")
	f.Add("", "", "", "")
	f.Add("master", "null", "a/b/c", "value")
	f.Add("auto-assign", `{"a":1}`, "kubernetes.io/", "-")
	f.Fuzz(func(t *testing.T, role, args, label, value string) {
		g := NewWithT(t)
		annotations := map[string]string{
			metal3.RoleAnnotation:                    role,
			metal3.InstallerArgsAnnotation:           args,
			metal3.NodeLabelAnnotationPrefix + label: value,
		}
		settings, err := settingsOf(hostWith(annotations))
		if err != nil {
			g.Expect(err).To(MatchError(ContainSubstring("host")))
			return
		}
		g.Expect(role).To(BeElementOf("", "auto-assign", "worker"))
		for key, value := range settings.mergeLabels(map[string]string{"zone": "a"}) {
			g.Expect(validation.IsQualifiedName(key)).To(BeEmpty())
			g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty())
		}
	})
}

// The Metal3 metadata of a host is refused, or results in variables. It cannot replace the variables that
// identify the host.
func FuzzMetadata(f *testing.F) {
	for _, raw := range []string{
		"uuid: other\nmetal3-name: other\nproviderid: metal3://a\n", "a: {b: [c, 1]}\n", "- a\n", "null", "{", "a: &a [*a]", "",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		g := NewWithT(t)
		values, err := variables(hostWith(nil), []string{"METADATA_PROVIDERID", "METADATA_UUID"}, func() ([]byte, error) { return raw, nil })
		if err != nil {
			g.Expect(err).To(MatchError(ContainSubstring("the Metal3 metadata of the host")))
			return
		}
		g.Expect(values["METADATA_UUID"]).To(Equal("uid"))
	})
}
