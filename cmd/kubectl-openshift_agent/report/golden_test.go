package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/redact"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// recorded is the folder with objects that the end-to-end tests recorded in each phase.
const recorded = "../../../config/argocd/testdata"

// maxRecorded is the length of a file with a recorded cluster, in bytes.
const maxRecorded = 64 << 10

// phases are the recorded clusters. The demo records them: go -C test run ./demo -sample upgrade -record <folder>. Of a
// failed installation, config/argocd/testdata has the control plane and the config of the host.
var phases = []string{
	"installing", "installed", "master-leaves-etcd", "master-is-replaced", "upgrade-is-requested", "release-is-upgraded",
	"last-master-is-upgraded",
}

// TestRecordedClusters compares what the commands show of recorded clusters, with all their Machines, hosts and Agents, with
// the text next to each file. With UPDATE_GOLDEN=1 it writes the texts.
func TestRecordedClusters(t *testing.T) {
	for _, phase := range phases {
		t.Run(phase, func(t *testing.T) {
			g, file := NewWithT(t), filepath.Join("testdata", "recorded", phase)
			content, err := os.ReadFile(file + ".yaml")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(content)).To(BeNumerically("<", maxRecorded))
			expectNoCredentials(g, content)
			s := snapshot.Snapshot{}
			g.Expect(yaml.UnmarshalStrict(content, &s)).To(Succeed(), "fields of the product")
			var shown bytes.Buffer
			g.Expect(WriteList(&shown, &s, All(&s))).To(Succeed())
			shown.WriteString("\n")
			show(g, &shown, &s)
			compare(g, file+".txt", shown.String())
		})
	}
}

// expectNoCredentials checks that a recording contains nothing that an archive would hide.
func expectNoCredentials(g Gomega, content []byte) {
	object := map[string]any{}
	g.Expect(yaml.Unmarshal(content, &object)).To(Succeed())
	redact.New().Object(object)
	archived, err := yaml.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(archived)).NotTo(ContainSubstring(redact.Removed))
}

// compare compares a text with a file, or writes the file.
func compare(g Gomega, file, text string) {
	if os.Getenv("UPDATE_GOLDEN") != "" {
		g.Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(file, []byte(text), 0o644)).To(Succeed())
		return
	}
	expected, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(Equal(string(expected)))
}

// TestRecordedPhases compares what the commands show of recorded objects with testdata/phases.txt. With UPDATE_GOLDEN=1 it
// writes the file.
func TestRecordedPhases(t *testing.T) {
	const golden = "testdata/phases.txt"
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(recorded, "OpenshiftAssisted*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">=", 30))
	var shown bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		phase := strings.TrimSuffix(filepath.Base(file), ".yaml")
		fmt.Fprintf(&shown, "==> %s\n", phase)
		show(g, &shown, phaseOf(g, phase, content))
	}
	compare(g, golden, shown.String())
}

// phaseOf returns a cluster with a recorded object: its control plane, or the config of its only Machine.
func phaseOf(g Gomega, phase string, content []byte) *snapshot.Snapshot {
	s := &snapshot.Snapshot{}
	if strings.HasPrefix(phase, snapshot.KindControlPlane) {
		cp := controlplanev1.OpenshiftAssistedControlPlane{}
		g.Expect(yaml.Unmarshal(content, &cp)).To(Succeed())
		s.ControlPlanes = append(s.ControlPlanes, cp)
		s.Clusters = append(s.Clusters, ownerOf(&cp, cp.Name, &cp))
		s.Time = readAfter(cp.CreationTimestamp, cp.Status.Conditions)
		return s
	}
	config := bootstrapv1.OpenshiftAssistedConfig{}
	g.Expect(yaml.Unmarshal(content, &config)).To(Succeed())
	cluster := config.Labels[clusterv1.ClusterNameLabel]
	machine := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: config.Namespace, Name: config.Name, Labels: config.Labels, CreationTimestamp: config.CreationTimestamp,
		DeletionTimestamp: config.DeletionTimestamp,
	}}
	machine.Spec.ClusterName, machine.Spec.Bootstrap.ConfigRef.Name = cluster, config.Name
	if meta.IsStatusConditionTrue(config.Status.Conditions, bootstrapv1.HostInstalledCondition) {
		machine.Status.NodeRef.Name = config.Name
	}
	s.Machines, s.Configs = append(s.Machines, machine), append(s.Configs, config)
	s.Clusters = append(s.Clusters, ownerOf(&config, cluster, nil))
	s.Time = readAfter(config.CreationTimestamp, config.Status.Conditions)
	return s
}

// ownerOf returns the Cluster of an object. The control plane is nil if the object is a config.
func ownerOf(object metav1.Object, name string, controlPlane *controlplanev1.OpenshiftAssistedControlPlane) clusterv1.Cluster {
	cluster := clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: name, CreationTimestamp: object.GetCreationTimestamp(),
		DeletionTimestamp: object.GetDeletionTimestamp(),
	}}
	if controlPlane != nil {
		cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: controlplanev1.GroupVersion.Group, Kind: snapshot.KindControlPlane, Name: controlPlane.Name,
		}
		cluster.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.ClusterAvailableCondition, Status: metav1.ConditionFalse, Reason: "NotAvailable",
			Message: "* ControlPlaneAvailable: Waiting for the control plane.", LastTransitionTime: object.GetCreationTimestamp(),
		}}
		if meta.IsStatusConditionTrue(controlPlane.Status.Conditions, controlplanev1.AvailableCondition) {
			cluster.Status.Conditions[0] = metav1.Condition{Type: clusterv1.ClusterAvailableCondition, Status: metav1.ConditionTrue}
		}
	}
	return cluster
}

// readAfter returns the time five minutes after the last change of a condition.
func readAfter(created metav1.Time, conditions []metav1.Condition) metav1.Time {
	last := created
	for _, c := range conditions {
		if last.Before(&c.LastTransitionTime) {
			last = c.LastTransitionTime
		}
	}
	return metav1.NewTime(last.Add(5 * time.Minute))
}

// show writes the tree and the first cause of each cluster.
func show(g Gomega, out *bytes.Buffer, s *snapshot.Snapshot) {
	for _, c := range All(s) {
		g.Expect(WriteTree(out, Tree(c))).To(Succeed())
		out.WriteString("\n")
		object := judge.Object{Kind: snapshot.KindCluster, Namespace: c.Namespace, Name: c.Name}
		g.Expect(WriteCause(out, object, c.Time, &c.Cause)).To(Succeed())
		out.WriteString("\n")
	}
}
