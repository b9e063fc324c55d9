package gather

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/archive"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/page"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/redact"
)

func TestArchiveContainsObjectsLogsAndPage(t *testing.T) {
	g, h := NewWithT(t), newHub(t)
	h.add(t, secret, `
apiVersion: v1
kind: Event
metadata: {namespace: lab, name: e1}
involvedObject: {kind: Machine, name: m0}
type: Warning
reason: Stuck
message: The Machine is stuck.
lastTimestamp: "2026-11-29T11:30:00Z"
`, `
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {namespace: lab, name: free}
`)
	files := write(t, h.sources())
	g.Expect(files).To(And(
		HaveKey("objects/Cluster.cluster.x-k8s.io/ha.yaml"), HaveKey("objects/Machine.cluster.x-k8s.io/m0.yaml"),
		HaveKey("objects/BareMetalHost.metal3.io/free.yaml"),
		HaveKeyWithValue("objects/Events.yaml", ContainSubstring("The Machine is stuck.")),
		HaveKeyWithValue("logs/cluster-api/capi-0/manager.log", "manager previous=false\n"),
		HaveKeyWithValue("logs/cluster-api/capi-0/manager-previous.log", "manager previous=true\n"),
		HaveKeyWithValue("index.html", And(ContainSubstring("lab/ha"), ContainSubstring("The Machine is stuck."))),
	))
	g.Expect(files["objects/Secrets.yaml"]).To(And(ContainSubstring("name: ha-kubeconfig"), ContainSubstring("keyNames:\n- value\n"),
		Not(ContainSubstring("planted"))))
	g.Expect(h.listed).To(ConsistOf("*v1.PartialObjectMetadataList"), "the API server must not send the content of Secrets")
}

func TestObjectsOfOtherClustersAreLeftOut(t *testing.T) {
	g, h := NewWithT(t), newHub(t)
	h.add(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {namespace: lab, name: other, uid: u2, labels: {cluster.x-k8s.io/cluster-name: other}}
`, `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3Machine
metadata: {namespace: lab, name: other-infra, ownerReferences: [{uid: u2, kind: Machine, name: other, apiVersion: v1}]}
`, `
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {namespace: lab, name: taken}
spec: {consumerRef: {kind: Metal3Machine, name: other-infra}}
`, `
apiVersion: v1
kind: Event
metadata: {namespace: lab, name: e1}
involvedObject: {kind: BareMetalHost, name: taken}
`, `
apiVersion: hive.openshift.io/v1
kind: ClusterImageSet
metadata: {name: unrelated}
`)
	for name := range write(t, h.sources()) {
		g.Expect(name).NotTo(Or(ContainSubstring("other"), ContainSubstring("taken"), ContainSubstring("Event"), ContainSubstring("unrelated")))
	}
}

func TestUnreadableKindsAreListed(t *testing.T) {
	g, h, o := NewWithT(t), newHub(t), options(t)
	h.errors = map[string]error{
		"Secret": forbidden("secrets"), "Deployment": forbidden("deployments"), "Agent": &meta.NoKindMatchError{},
		"BareMetalHost": io.ErrUnexpectedEOF,
	}
	h.log = func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		return nil, forbidden("pods/log")
	}
	h.add(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {namespace: mce, name: assisted-image-service}
spec: {selector: {matchLabels: {app: image}}}
`)
	gaps, err := Write(t.Context(), h.sources(), o)
	g.Expect(err).NotTo(HaveOccurred())
	files := contentOf(t, o.Output)
	causes := map[string]string{}
	for _, gap := range gaps {
		causes[gap.What] = gap.Cause
		g.Expect(files["gather.yaml"]).To(ContainSubstring(gap.What))
		g.Expect(files["index.html"]).To(ContainSubstring("<td>" + gap.What + "</td>"))
	}
	g.Expect(causes).To(And(
		HaveKeyWithValue("Secret", "no permission"),
		HaveKeyWithValue("Agent.agent-install.openshift.io", "this management cluster does not have the kind"),
		HaveKeyWithValue("BareMetalHost.metal3.io", "unexpected EOF"),
		HaveKeyWithValue("Deployment.apps of all namespaces", "no permission"),
		HaveKeyWithValue("logs of managers in namespace capi-system", "no permission"),
		HaveKeyWithValue("log assisted-service: capi-0 manager", "no permission"),
	))
}

// endless is a log without an end. When it has no more lines, the time of its reader ends.
type endless struct {
	lines  io.Reader
	end    func()
	closed chan struct{}
}

func (e *endless) Read(block []byte) (int, error) {
	n, err := e.lines.Read(block)
	if err == nil {
		return n, nil
	}
	e.end()
	<-e.closed
	return 0, io.ErrClosedPipe
}

func (e *endless) Close() error {
	select {
	case <-e.closed:
	default:
		close(e.closed)
	}
	return nil
}

// newGatherer returns a gatherer with an empty archive.
func newGatherer(t *testing.T, s Sources) *gatherer {
	t.Helper()
	o := options(t)
	o.unpacked = budget{10, 1 << 20}
	a, err := archive.New(o.Output, "gather-lab-ha-20261129-120000", now, archive.MaxBytes)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(a.Discard)
	return &gatherer{Sources: s, Options: o, archive: a, redactor: redact.New()}
}

func TestEndlessLogIsCutOff(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	gatherer := newGatherer(t, Sources{Logs: func(_ context.Context, _, _ string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
		g.Expect(options.LimitBytes).To(BeNil(), "the kubelet would count from the first of the newest lines")
		g.Expect(*options.SinceSeconds).To(BeEquivalentTo(3600))
		lines := strings.NewReader(strings.Repeat("0123456789\n", 100_000) + "newest\n")
		return &endless{lines, func() { cancel(errTimeout) }, make(chan struct{})}, nil
	}})
	pod := &corev1.Pod{}
	pod.Name = "capi-0"
	g.Expect(gatherer.addLog(ctx, workload{component: "capi"}, pod, "manager", false)).To(Succeed())
	g.Expect(gatherer.input.Gaps).To(ConsistOf(And(HaveField("What", "end of log capi: capi-0 manager"),
		HaveField("Cause", ContainSubstring("the time of --timeout is over")))))
	g.Expect(gatherer.archive.Commit()).To(Succeed())
	log := contentOf(t, gatherer.Output)["logs/capi/capi-0/manager.log"]
	g.Expect(log).To(And(HavePrefix("[only the last 4096 bytes follow]\n0123456789\n"), HaveSuffix("\nnewest\n")))
	g.Expect(len(log)).To(BeNumerically("<=", 4096+40))
}

func TestTailKeepsTheNewestLines(t *testing.T) {
	for _, tc := range []struct{ content, want, note string }{
		{strings.Repeat("old\n", 50_000) + "new\n", "old\nnew\n", "[only the last 10 bytes follow]\n"},
		{"all\n", "all\n", ""},
		{`{"password":"aaaaaHunter2","b":1}`, `"b":1}`, "[only the last 10 bytes follow, from inside of a line]\n"},
		{`{"password":"aaaaaHunter2"},1` + "\n", ",1\n", "[only the last 10 bytes follow, from inside of a line]\n"},
		{"password=aaaaaHunter2Hunter2\n", "", "[only the last 10 bytes follow, from inside of a line]\n"},
	} {
		g := NewWithT(t)
		text, note, err := tail(strings.NewReader(tc.content), 10)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(text).To(Equal(tc.want))
		g.Expect(note).To(Equal(tc.note))
	}
}

func TestVanishedPodIsListed(t *testing.T) {
	g, h, o := NewWithT(t), newHub(t), options(t)
	h.log = func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "capi-0")
	}
	gaps, err := Write(t.Context(), h.sources(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gaps).To(ContainElement(page.Gap{What: "log cluster-api: capi-0 manager", Cause: "it no longer exists"}))
}

func TestFullArchiveContainsThePage(t *testing.T) {
	g, h, o := NewWithT(t), newHub(t), options(t)
	o.archiveBytes = 6 << 10
	for name, size := range map[string]int{"big": 8 << 10, "small": 3 << 10} {
		h.add(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {namespace: lab, name: `+name+`, annotations: {note: "`+strings.Repeat("x", size)+`"}}
`)
	}
	_, err := Write(t.Context(), h.sources(), o)
	g.Expect(err).NotTo(HaveOccurred())
	files := contentOf(t, o.Output)
	g.Expect(files).To(And(HaveKey("index.html"), HaveKey("objects/Machine.cluster.x-k8s.io/small.yaml"),
		Not(HaveKey("objects/Machine.cluster.x-k8s.io/big.yaml"))))
	g.Expect(files["gather.yaml"]).To(ContainSubstring("the archive has reached its limit"))
}

func TestTimeoutEndsTheLogs(t *testing.T) {
	g, h, o := NewWithT(t), newHub(t), options(t)
	o.Timeout = 100 * time.Millisecond
	h.listing = func(ctx context.Context, kind string) {
		if kind == "Pod" {
			<-ctx.Done()
		}
	}
	gaps, err := Write(t.Context(), h.sources(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gaps).To(ContainElement(page.Gap{What: "logs of further Pods", Cause: "the time of --timeout is over"}))
	for name := range contentOf(t, o.Output) {
		g.Expect(name).NotTo(HavePrefix("logs/"))
	}
}

func TestTimeoutEndsUnpacking(t *testing.T) {
	g, gatherer := NewWithT(t), newGatherer(t, Sources{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTimeout)
	u := unpacker{gatherer: gatherer, title: "logs"}
	logs := tarGz(t, [2]string{"a.log", "a"}, [2]string{"b.log", "b"})
	g.Expect(u.unpack(ctx, nil, strings.NewReader(logs), 0)).To(Succeed())
	g.Expect(gatherer.input.Gaps).To(ContainElement(HaveField("Cause", "the time of --timeout is over")))
	g.Expect(gatherer.input.Files).To(BeEmpty())
}

func TestHostileNamesStayInTheArchive(t *testing.T) {
	g, h := NewWithT(t), newHub(t)
	for _, name := range []string{
		"../../../etc/passwd", "..", ".", "-rf", `C:\\windows`, "a/b", "A", "a",
		"é\x1b[2J", strings.Repeat("x", 5000),
	} {
		h.objects["Machine"] = append(h.objects["Machine"], map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": map[string]any{"namespace": "lab", "name": name},
		})
	}
	h.objects["Pod"][0]["metadata"].(map[string]any)["name"] = "../pod"
	files := write(t, h.sources()) // checks each name
	names := []string{}
	for name := range files {
		g.Expect(len(name)).To(BeNumerically("<", 300))
		if strings.HasPrefix(name, "objects/Machine.") {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	g.Expect(slices.Compact(names)).To(HaveLen(11), "no file replaces another one")
}

func TestSameObjectsGiveTheSameArchive(t *testing.T) {
	g := NewWithT(t)
	first, second := options(t), options(t)
	for _, o := range []Options{first, second} {
		h := newHub(t)
		h.add(t, secret)
		_, err := Write(t.Context(), h.sources(), o)
		g.Expect(err).NotTo(HaveOccurred())
	}
	a, err := os.ReadFile(first.Output)
	g.Expect(err).NotTo(HaveOccurred())
	b, err := os.ReadFile(second.Output)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a).To(Equal(b))
}

func TestOnlyTheUserReadsTheArchive(t *testing.T) {
	g, h, o := NewWithT(t), newHub(t), options(t)
	_, err := Write(t.Context(), h.sources(), o)
	g.Expect(err).NotTo(HaveOccurred())
	info, err := os.Stat(o.Output)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	g.Expect(os.ReadDir(filepath.Dir(o.Output))).To(HaveLen(1), "no temporary file")

	_, err = Write(t.Context(), h.sources(), o)
	g.Expect(err).To(MatchError(ContainSubstring("exists. Name another file")))
}

func TestInterruptedRunLeavesNoFile(t *testing.T) {
	g, h, o := NewWithT(t), newHub(t), options(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.log = func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		cancel()
		return nil, context.Canceled
	}
	_, err := Write(ctx, h.sources(), o)
	g.Expect(err).To(MatchError(ContainSubstring("interrupted: no archive was written")))
	g.Expect(os.ReadDir(filepath.Dir(o.Output))).To(BeEmpty())
}

func TestUnknownClusterLeavesNoFile(t *testing.T) {
	g, h, o := NewWithT(t), newHub(t), options(t)
	o.Cluster = "none"
	_, err := Write(t.Context(), h.sources(), o)
	g.Expect(err).To(MatchError(ContainSubstring("cannot read Cluster lab/none")))
	g.Expect(os.ReadDir(filepath.Dir(o.Output))).To(BeEmpty())
}
