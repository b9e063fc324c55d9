package page

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// at returns a time before the archive in the format of Kubernetes.
func at(minutes int) string {
	return now.Add(-time.Duration(minutes) * time.Minute).Format(time.RFC3339)
}

// parse returns objects from YAML.
func parse(t *testing.T, documents ...string) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for _, document := range documents {
		content, err := yaml.YAMLToJSON([]byte(document))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		o := unstructured.Unstructured{}
		NewWithT(t).Expect(o.UnmarshalJSON(content)).To(Succeed())
		objects = append(objects, o)
	}
	return objects
}

// cond returns a condition as one line of YAML.
func cond(kind, status, reason, message string, since int) string {
	const format = "  - {type: %s, status: %q, reason: %s, message: %q, lastTransitionTime: %q}\n"
	return fmt.Sprintf(format, kind, status, reason, message, at(since))
}

// A stage of the bootstrap provider without a label would have no bar that a reader can name.
func TestEachStageOfAHostHasALabel(t *testing.T) {
	g := NewWithT(t)
	for _, s := range hostSteps() {
		g.Expect(s.label).NotTo(BeEmpty(), s.condition)
		g.Expect((&view{}).Classes()).To(ContainElement(s.class), s.condition)
	}
	g.Expect(hostLabels).To(HaveLen(len(hostSteps())), "no label of a condition that is no stage")
}

// machine returns a Machine with its config, host and Agent. Its host passed the stages at some minutes before the archive.
func machine(t *testing.T, n int, controlPlane bool, passed []int, last string) []unstructured.Unstructured {
	t.Helper()
	name, role := fmt.Sprintf("ha-%d", n), ""
	if controlPlane {
		role = `, cluster.x-k8s.io/control-plane: ""`
	}
	var conditions strings.Builder
	for i, s := range hostSteps() {
		if i < len(passed) {
			conditions.WriteString(cond(s.condition, "True", s.condition, "", passed[i]))
		}
	}
	labels := "{cluster.x-k8s.io/cluster-name: ha" + role + "}"
	return parse(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {namespace: lab, name: `+name+`, creationTimestamp: "`+at(75)+`", labels: `+labels+`}
spec: {clusterName: ha, bootstrap: {configRef: {name: `+name+`}}, infrastructureRef: {kind: Metal3Machine, name: `+name+`}}
status: {phase: Provisioning}
`, `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedConfig
metadata: {namespace: lab, name: `+name+`, creationTimestamp: "`+at(75)+`", labels: `+labels+`}
status:
  agentRef: {name: agent-`+name+`}
  conditions:
`+conditions.String()+last, `
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {namespace: lab, name: rack1-u`+strconv.Itoa(n)+`}
spec: {consumerRef: {kind: Metal3Machine, name: `+name+`, namespace: lab}}
status:
  poweredOn: true
  provisioning: {state: provisioned}
  operationHistory:
    inspect: {start: "`+at(74)+`", end: "`+at(69)+`"}
    provision: {start: "`+at(68)+`", end: "`+at(62)+`"}
`, `
apiVersion: agent-install.openshift.io/v1beta1
kind: Agent
metadata: {namespace: lab, name: agent-`+name+`}
spec: {hostname: master-`+strconv.Itoa(n)+`.example.com}
status:
  role: master
  debugInfo: {state: installing-in-progress}
  validationsInfo:
    network:
    - {id: ntp-synced, status: failure, message: Host could not synchronize with an NTP server}
    - {id: has-default-route, status: success}
  conditions:
`+cond("Connected", "True", "AgentIsConnected", "", 60))
}

// failed returns the input of a cluster whose installation failed.
func failed(t *testing.T) *Input {
	t.Helper()
	objects := parse(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {namespace: lab, name: ha, creationTimestamp: "`+at(76)+`"}
spec: {controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: OpenshiftAssistedControlPlane, name: ha}}
status: {phase: Provisioning, controlPlane: {desiredReplicas: 3}, workers: {desiredReplicas: 1}}
`, `
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedControlPlane
metadata: {namespace: lab, name: ha, creationTimestamp: "`+at(76)+`"}
spec: {distributionVersion: 4.19.3}
status:
  installation: {phase: Failed, progress: 61%, startTime: "`+at(55)+`"}
  conditions:
`+cond("ReleaseImageResolved", "True", "ReleaseImageResolved", "", 75)+cond("MachinesCreated", "True", "MachinesCreated", "", 74)+
		cond("Installed", "False", "InstallationFailed",
			"the installation failed: host master-2 <script>alert(1)</script> did not boot from its disk", 8))
	objects = append(objects, machine(t, 0, true, []int{72, 71, 60, 58, 56, 15}, "")...)
	objects = append(objects, machine(t, 1, true, []int{72, 71, 59, 58, 56},
		cond("HostInstalled", "False", "HostInstalling", "Rebooting", 56))...)
	objects = append(objects, machine(t, 2, true, []int{72, 71, 61, 58, 56},
		cond("HostInstalled", "False", "HostInstallationFailed", "no boot", 56))...)
	objects = append(objects, machine(t, 3, false, []int{70, 69},
		cond("HostIdentified", "False", "WaitingForHost", "no Agent", 69))...)
	in := &Input{
		Namespace: "lab", Cluster: "ha", Time: now, Version: "v0.1.0",
		Gaps:  []Gap{{What: "Secret", Cause: "no permission"}, {What: "Deployment.apps of all namespaces", Cause: "no permission"}},
		Files: []File{{Name: "logs/cluster-api/capi-0/manager.log", Title: "cluster-api: capi-0 manager", Bytes: 4321}},
		Events: parse(t, `
apiVersion: v1
kind: Event
involvedObject: {kind: BareMetalHost, name: rack1-u2}
type: Warning
reason: PowerManagementError
message: The BMC does not answer.
lastTimestamp: "`+at(20)+`"
count: 3
`),
	}
	for i := range objects {
		o := &objects[i]
		in.Objects = append(in.Objects, Object{Unstructured: o, File: "objects/" + o.GetKind() + "/" + o.GetName() + ".yaml"})
	}
	stages := []string{"Starting installation", "Writing image to disk", "Rebooting", "Configuring", "Joined", "Done"}
	for n, times := range map[int][]int{0: {55, 50, 40, 33, 24, 15}, 1: {55, 51, 39}, 2: {55, 49, 38}} {
		for i, minutes := range times {
			in.ServiceEvents = append(in.ServiceEvents, ServiceEvent{
				Time: now.Add(-time.Duration(minutes) * time.Minute), Host: fmt.Sprintf("agent-ha-%d", n), Severity: "info",
				Name: "host_install_progress_updated", Message: fmt.Sprintf("Host master-%d: reached installation stage %s", n, stages[i]),
			})
		}
	}
	in.ServiceEvents = append(in.ServiceEvents, ServiceEvent{
		Time: now.Add(-8 * time.Minute), Host: "agent-ha-2", Severity: "error", Name: "host_status_updated",
		Message: "Host master-2: updated status to error",
	})
	return in
}

// TestPage compares the page of a failed installation with testdata/index.html. With UPDATE_GOLDEN=1 it writes the file.
func TestPage(t *testing.T) {
	const golden = "testdata/index.html"
	g := NewWithT(t)
	html, err := Render(failed(t))
	g.Expect(err).NotTo(HaveOccurred())
	if os.Getenv("UPDATE_GOLDEN") != "" {
		g.Expect(os.WriteFile(golden, []byte(html), 0o644)).To(Succeed())
		return
	}
	expected, err := os.ReadFile(golden)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(html).To(Equal(string(expected)))
}

func TestPageShowsCauseStagesAndGaps(t *testing.T) {
	g := NewWithT(t)
	html, err := Render(failed(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(html).To(And(
		ContainSubstring(`<span class="badge s-failed">Failed</span>`), ContainSubstring("<strong>InstallationFailed</strong>"),
		ContainSubstring("docs/conditions.md#"), ContainSubstring("Writing image to disk"), ContainSubstring("ntp-synced: Host could not"),
		ContainSubstring("The BMC does not answer. (3 times)"), ContainSubstring("<td>Secret</td>"),
	))
	g.Expect(html).NotTo(ContainSubstring("ZgotmplZ"), "the template rejects no value")
}

func TestForeignTextIsEscaped(t *testing.T) {
	g, in := NewWithT(t), failed(t)
	const script = `"><script>alert(1)</script><a href="javascript:alert(1)">`
	for i := range in.Objects {
		in.Objects[i].SetNamespace("lab")
		in.Objects[i].File = "javascript:alert(1)"
	}
	in.Cluster, in.Version = "ha", script
	in.Files = append(in.Files, File{Name: "javascript:alert(1)", Title: script})
	in.Gaps = append(in.Gaps, Gap{What: script, Cause: script})
	in.ServiceEvents = append(in.ServiceEvents, ServiceEvent{Time: now, Severity: script, Name: script, Message: script, Host: script})
	html, err := Render(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(html).NotTo(Or(ContainSubstring("<script"), ContainSubstring(`href="javascript:`)))
	g.Expect(html).To(ContainSubstring("&lt;script&gt;"))
}

func TestPageOfNothing(t *testing.T) {
	g := NewWithT(t)
	html, err := Render(&Input{Namespace: "lab", Cluster: "ha", Time: now})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(html).To(And(ContainSubstring("The Cluster is not readable."), ContainSubstring("No object reports a stage yet.")))
}

func TestTicksAreFew(t *testing.T) {
	for _, span := range []time.Duration{time.Second, time.Minute, 76 * time.Minute, 30 * time.Hour, 400 * 24 * time.Hour} {
		ticks := ticksOf(scale{from: now, to: now.Add(span)})
		NewWithT(t).Expect(len(ticks)).To(And(BeNumerically("<=", maxTicks+1), BeNumerically(">=", 0)), span.String())
	}
}

func TestEntriesAreOrdered(t *testing.T) {
	g := NewWithT(t)
	last := time.Time{}
	for _, e := range entriesOf(failed(t)) {
		g.Expect(e.Time.Before(last)).To(BeFalse())
		last = e.Time
	}
	g.Expect(strings.Count(fmt.Sprint(entriesOf(failed(t))), "reached installation stage")).To(Equal(12))
}
