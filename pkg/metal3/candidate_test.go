package metal3

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

func TestUnavailableReason(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Host)
		why    string
	}{
		"available":                {func(*Host) {}, ""},
		"ready, in older versions": {func(h *Host) { h.Status.Provisioning.State = "ready" }, ""},
		"in use":                   {func(h *Host) { h.Spec.ConsumerRef = &Consumer{Kind: "Other"} }, "in use"},
		"being deleted":            {func(h *Host) { h.DeletionTimestamp = ptr.To(metav1.Now()) }, "being deleted"},
		"in error": {
			func(h *Host) { h.Status.ErrorType, h.Status.ErrorMessage = "registration error", " no BMC\n" }, "registration error: no BMC",
		},
		"in an error without a type": {func(h *Host) { h.Status.ErrorMessage = "no BMC" }, "error: no BMC"},
		"paused": {
			func(h *Host) { h.Annotations = map[string]string{"baremetalhost.metal3.io/paused": ""} },
			"annotated with baremetalhost.metal3.io/paused",
		},
		"unhealthy": {
			func(h *Host) { h.Annotations = map[string]string{"capm3.metal3.io/unhealthy": ""} }, "annotated with capm3.metal3.io/unhealthy",
		},
		"unhealthy, in older versions": {
			func(h *Host) { h.Annotations = map[string]string{"capi.metal3.io/unhealthy": ""} }, "annotated with capi.metal3.io/unhealthy",
		},
		"detached, which CAPM3 ignores": {func(h *Host) { h.Annotations = map[string]string{"baremetalhost.metal3.io/detached": ""} }, ""},
		"reserved for this Machine":     {func(h *Host) { h.Labels = map[string]string{NodeReuseLabel: "md-own"} }, ""},
		"reserved": {
			func(h *Host) { h.Labels = map[string]string{NodeReuseLabel: "md-0"} },
			"reserved for the next Machine of md-0 by the label infrastructure.cluster.x-k8s.io/node-reuse",
		},
		"reserved without a name": {
			func(h *Host) { h.Labels = map[string]string{NodeReuseLabel: ""} },
			"reserved for the next Machine of an unnamed owner by the label infrastructure.cluster.x-k8s.io/node-reuse",
		},
		"new":                         {func(h *Host) { h.Status.Provisioning.State = "" }, "not registered by the Bare Metal Operator yet"},
		"inspecting":                  {func(h *Host) { h.Status.Provisioning.State = "inspecting" }, "inspecting"},
		"provisioned by another tool": {func(h *Host) { h.Status.Provisioning.State = "externally provisioned" }, "externally provisioned"},
	} {
		host := &Host{}
		host.Status.Provisioning.State = "available"
		tc.change(host)
		NewWithT(t).Expect(UnavailableReason(host, "md-own")).To(Equal(tc.why), name)
	}
}

func TestHostsReservedForAMachine(t *testing.T) {
	const cp, name, md = "cluster.x-k8s.io/control-plane", "cluster.x-k8s.io/control-plane-name", "cluster.x-k8s.io/deployment-name"
	for reuse, machineLabels := range map[string]map[string]string{
		"cp-c1": {cp: "", name: "c1", md: "0"}, "md-0": {md: "0"}, "": {cp: "", md: "0"},
	} {
		machine := &unstructured.Unstructured{Object: map[string]any{}}
		machine.SetLabels(machineLabels)
		NewWithT(t).Expect(NodeReuseName(machine)).To(Equal(reuse))
	}
	g := NewWithT(t)
	host := &Host{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{NodeReuseLabel: ""}}}
	g.Expect(NodeReuseName(&unstructured.Unstructured{Object: map[string]any{}})).To(BeEmpty())
	g.Expect(IsReservedFor(host, "")).To(BeFalse(), "an empty name reserves no host")
	host.Labels[NodeReuseLabel], host.Status.Provisioning.State = "md-0", "deprovisioning"
	g.Expect(IsExpected(host, "md-0")).To(BeTrue())
	g.Expect(IsExpected(host, "md-1")).To(BeFalse())
	host.Status.ErrorMessage = "no BMC"
	g.Expect(IsExpected(host, "md-0")).To(BeFalse(), "CAPM3 skips a host with an error")
	host.Status.ErrorMessage, host.Status.Provisioning.State = "", "available"
	g.Expect(IsExpected(host, "md-0")).To(BeFalse())
}

func TestUnmanagedAnnotation(t *testing.T) {
	g := NewWithT(t)
	host := &Host{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"capm3.metal3.io/unhealthy": ""}}}
	g.Expect(UnmanagedAnnotation(host)).To(BeEmpty(), "CAPM3 sets this annotation")
	host.Annotations["baremetalhost.metal3.io/detached"] = ""
	g.Expect(UnmanagedAnnotation(host)).To(Equal("baremetalhost.metal3.io/detached"))
}

func TestHostSelector(t *testing.T) {
	host := labels.Set{"zone": "a", "size": "4"}
	for name, tc := range map[string]struct {
		selector any
		matches  bool
	}{
		"none":                        {nil, true},
		"a label":                     {map[string]any{"matchLabels": map[string]any{"zone": "a"}}, true},
		"another label":               {map[string]any{"matchLabels": map[string]any{"zone": "b"}}, false},
		"one of two labels":           {map[string]any{"matchLabels": map[string]any{"zone": "a", "rack": "1"}}, false},
		"an expression":               {expression("zone", "in", "a", "b"), true},
		"an expression in capitals":   {expression("zone", "NotIn", "a", "b"), false},
		"an operator of labels alone": {expression("size", "gt", "3"), true},
	} {
		machine := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		if tc.selector != nil {
			machine.Object["spec"] = map[string]any{"hostSelector": tc.selector}
		}
		selector, err := HostSelector(machine)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), name)
		NewWithT(t).Expect(selector.Matches(host)).To(Equal(tc.matches), name)
	}
}

func expression(key, operator string, values ...any) map[string]any {
	return map[string]any{"matchExpressions": []any{map[string]any{"key": key, "operator": operator, "values": values}}}
}

func TestInvalidHostSelector(t *testing.T) {
	for name, selector := range map[string]any{
		"no operator":    expression("zone", "like", "a"),
		"no label value": map[string]any{"matchLabels": map[string]any{"zone": "a b"}},
		"no list":        map[string]any{"matchExpressions": "zone"},
		"no object":      "zone",
	} {
		_, err := HostSelector(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hostSelector": selector}}})
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("spec.hostSelector: ")), name)
	}
}

func TestLargestDisk(t *testing.T) {
	g := NewWithT(t)
	g.Expect(LargestDisk(nil)).To(BeZero())
	g.Expect(LargestDisk([]Disk{{SizeBytes: 1}, {SizeBytes: 3}, {SizeBytes: 2}})).To(BeEquivalentTo(3))
}
