package bootmode

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

func infraMachine(version, kind, field, format string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": map[string]any{field: format}}}}
	u.SetAPIVersion("infrastructure.cluster.x-k8s.io/" + version)
	u.SetKind(kind)
	u.SetName("m")
	return u
}

func TestChoose(t *testing.T) {
	const live, disk = bootstrapv1.BootModeLiveISO, bootstrapv1.BootModeDiskImage
	for name, tc := range map[string]struct {
		latched, requested bootstrapv1.BootMode
		infraMachine       *unstructured.Unstructured
		want               bootstrapv1.BootMode
		err                string
	}{
		"v1beta1 live ISO":       {infraMachine: infraMachine("v1beta1", "Metal3Machine", "format", "live-iso"), want: live},
		"v1beta2 live ISO":       {infraMachine: infraMachine("v1beta2", "Metal3Machine", "diskFormat", "live-iso"), want: live},
		"disk image":             {infraMachine: infraMachine("v1beta2", "Metal3Machine", "diskFormat", "qcow2"), want: disk},
		"another infrastructure": {infraMachine: infraMachine("v1alpha1", "MetalStackMachine", "format", "live-iso"), want: disk},
		"the user's choice": {
			requested: live, infraMachine: infraMachine("v1beta2", "Metal3Machine", "diskFormat", "qcow2"), want: live,
		},
		"the latched mode has precedence": {
			latched: disk, requested: "", infraMachine: infraMachine("v1beta2", "Metal3Machine", "diskFormat", "live-iso"), want: disk,
		},
		"a machine that boots no live ISO": {
			requested: live, infraMachine: infraMachine("v1alpha1", "MetalStackMachine", "format", ""), err: "set spec.bootMode to DiskImage",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			mode, err := Choose(tc.latched, tc.requested, tc.infraMachine)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mode).To(Equal(tc.want))
		})
	}
}

func TestBootImageUsesTheFieldOfTheVersion(t *testing.T) {
	g := NewWithT(t)
	for version, field := range map[string]string{"v1beta1": "format", "v1beta2": "diskFormat"} {
		desired := LiveISO{}.BootImage(infraMachine(version, "Metal3Machine", field, "live-iso"), "http://img/x.iso")
		image, _, _ := unstructured.NestedStringMap(desired.Object, "spec", "image")
		g.Expect(image).To(Equal(map[string]string{"url": "http://img/x.iso", field: "live-iso"}), version)
		g.Expect(BootsFrom(desired, "http://img/x.iso")).To(BeTrue(), version)
		g.Expect(BootsFrom(desired, "http://img/y.iso")).To(BeFalse(), version)
	}
}

func TestDiskImageAcceptsOnlyIgnition(t *testing.T) {
	g := NewWithT(t)
	answer := `{"ignition":{"version":"3.1.0"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
	defer server.Close()
	data, err := DiskImage{}.UserData(t.Context(), server.URL, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data.Value)).To(Equal(answer))
	answer = `<html>secret</html>`
	_, err = DiskImage{}.UserData(t.Context(), server.URL, nil)
	g.Expect(err).To(MatchError(Not(ContainSubstring("secret"))), "the response is not quoted")
}
