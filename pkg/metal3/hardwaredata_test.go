package metal3

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

func TestNeverChosen(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*Host)
		never  bool
	}{
		"free":                        {func(*Host) {}, false},
		"in use":                      {func(h *Host) { h.Spec.ConsumerRef = &Consumer{Name: "m"} }, false},
		"paused, as during a move":    {func(h *Host) { h.Annotations = map[string]string{"baremetalhost.metal3.io/paused": ""} }, false},
		"unhealthy":                   {func(h *Host) { h.Annotations = map[string]string{"capm3.metal3.io/unhealthy": ""} }, true},
		"unhealthy, older":            {func(h *Host) { h.Annotations = map[string]string{"capi.metal3.io/unhealthy": ""} }, true},
		"being deleted":               {func(h *Host) { h.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"provisioned by another tool": {func(h *Host) { h.Spec.ExternallyProvisioned = true }, true},
	} {
		host := &Host{}
		tc.change(host)
		NewWithT(t).Expect(NeverChosen(host)).To(Equal(tc.never), situation)
	}
}

func TestHostSelectorOfTemplate(t *testing.T) {
	g := NewWithT(t)
	of := func(template any) (labels.Selector, error) {
		return HostSelectorOfTemplate(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": template}}})
	}
	selecting := func(value string) any {
		return map[string]any{"spec": map[string]any{"hostSelector": map[string]any{"matchLabels": map[string]any{"zone": value}}}}
	}
	selector, err := of(selecting("a"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(selector.String()).To(Equal("zone=a"))
	selector, err = of(map[string]any{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(selector.Matches(labels.Set{})).To(BeTrue(), "without a selector all hosts match")
	_, err = of(selecting("a b"))
	g.Expect(err).To(MatchError(HavePrefix("spec.template.spec.hostSelector: ")))
	_, err = of("no object")
	g.Expect(err).To(MatchError(HavePrefix("spec.template: ")))
}
