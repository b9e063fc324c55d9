package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

func in(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "chaos", Name: name}
}

func TestApprovalNeedsProof(t *testing.T) {
	at := time.Now()
	before, after := at.Add(-time.Minute), at.Add(time.Minute)
	a := approval{agent: in("agent"), machine: in("m"), at: at}
	for situation, tc := range map[string]struct {
		known  bool
		stays  []stay
		proven bool
	}{
		"the host of the Machine": {known: true, stays: []stay{{machine: in("m"), from: before}}, proven: true},
		"assigned until shortly before the approval": {
			known: true,
			stays: []stay{{machine: in("m"), from: before, to: at.Add(-slack / 2)}}, proven: true,
		},
		"a server without a BareMetalHost": {},
		"a host without a Machine":         {known: true},
		"the host of another Machine":      {known: true, stays: []stay{{machine: in("other"), from: before}}},
		"the host of a former Machine": {
			known: true,
			stays: []stay{{machine: in("m"), from: before, to: before.Add(time.Second)}, {machine: in("other"), from: before.Add(2 * time.Second)}},
		},
		"the host of the Machine later": {known: true, stays: []stay{{machine: in("m"), from: after}}},
	} {
		t.Run(situation, func(t *testing.T) {
			finding := proofMissing(a, tc.known, tc.stays)
			NewWithT(t).Expect(tc.proven).To(Equal(finding == ""), finding)
		})
	}
}

// The broken provider approves a host while a copy of its BareMetalHost, or another config, claims its server.
func TestApprovalAgainstAClaimIsReported(t *testing.T) {
	at := time.Now()
	long, short := at.Add(-2*claimSlack), at.Add(-claimSlack/2)
	a := approval{agent: in("agent"), machine: in("m"), at: at}
	own := []string{claimantOfHost(in("host")), claimantOfConfig(in("m"))}
	for situation, tc := range map[string]struct {
		claims []tenure
		found  string
	}{
		"no claim":        {},
		"its own objects": {claims: []tenure{{claimant: own[0], from: long}, {claimant: own[1], from: long}}},
		"another BareMetalHost": {
			claims: []tenure{{claimant: "BareMetalHost foreign/copy", from: long}},
			found:  "claimed by BareMetalHost foreign/copy",
		},
		"until after the approval": {
			claims: []tenure{{claimant: "BareMetalHost foreign/copy", from: long, to: at.Add(2 * slack)}},
			found:  "claimed by BareMetalHost foreign/copy",
		},
		"another config": {
			claims: []tenure{{claimant: "OpenshiftAssistedConfig chaos/other", from: long}},
			found:  "claimed by OpenshiftAssistedConfig chaos/other",
		},
		"another BareMetalHost, just now": {claims: []tenure{{claimant: "BareMetalHost foreign/copy", from: short}}},
		"another BareMetalHost, until before": {
			claims: []tenure{{claimant: "BareMetalHost foreign/copy", from: long, to: at.Add(-time.Second)}},
		},
		"another BareMetalHost, until the approval": {
			claims: []tenure{{claimant: "BareMetalHost foreign/copy", from: long, to: at.Add(slack / 2)}},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			finding := foreignClaims(a, own, tc.claims)
			if tc.found == "" {
				NewWithT(t).Expect(finding).To(BeEmpty())
			} else {
				NewWithT(t).Expect(finding).To(ContainSubstring(tc.found))
			}
		})
	}
}

// Claims follow the events of objects.
func TestClaimsAreRecorded(t *testing.T) {
	g := NewWithT(t)
	f := newFollower(nil)
	host := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "host"}}
	host.Spec.BootMACAddress, host.Spec.BMC.Address = "02:00:00:00:00:0A", "redfish://bmc"
	copied := host.DeepCopy()
	copied.Namespace, copied.Annotations = foreignNamespace, map[string]string{metal3api.DetachedAnnotation: ""}
	f.record(host, false)
	f.record(copied, false)
	config := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: "other", UID: "other"}}
	config.Status.AgentRef = &corev1.LocalObjectReference{Name: "agent"}
	config.Status.Conditions = []metav1.Condition{{
		Type: bootstrapv1.HostInstalledCondition, Status: metav1.ConditionTrue,
		Reason: "HostInstalled",
	}}
	f.record(config, false)
	f.judgeClaims(approval{agent: in("agent"), machine: in("m"), at: time.Now().Add(2 * claimSlack)}, in("host"))
	g.Expect(f.broken).To(ConsistOf(And(HaveField("Rule", claimRule),
		HaveField("What", HaveSuffix("claimed by BareMetalHost foreign/host, OpenshiftAssistedConfig chaos/other")))))

	f = newFollower(nil)
	f.record(host, false)
	f.record(copied, false)
	f.record(copied, true)
	f.record(config, false)
	f.record(config, true)
	f.judgeClaims(approval{agent: in("agent"), machine: in("m"), at: time.Now().Add(2 * claimSlack)}, in("host"))
	g.Expect(f.broken).To(BeEmpty())
}

func TestConditionsHaveReasonAndMessage(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	for situation, tc := range map[string]struct {
		condition metav1.Condition
		found     bool
	}{
		"true, without a message":                {condition("Ready", metav1.ConditionTrue, "HostInstalled", ""), true},
		"false, with a message":                  {condition("Ready", metav1.ConditionFalse, "WaitingForHost", "waiting"), true},
		"false, without a message":               {condition("Ready", metav1.ConditionFalse, "WaitingForHost", ""), false},
		"unknown, without a message":             {condition("Available", metav1.ConditionUnknown, "HealthUnknown", ""), false},
		"without a reason":                       {condition("Available", metav1.ConditionFalse, "", "waiting"), false},
		"a negative condition that is false":     {condition("Deleting", metav1.ConditionFalse, "NotDeleting", ""), true},
		"a negative condition without a message": {condition("Deleting", metav1.ConditionTrue, "DeletingInfraEnv", ""), false},
		"a negative condition with a message":    {condition("ScalingUp", metav1.ConditionTrue, "ScalingUp", "from 1 to 3"), true},
	} {
		t.Run(situation, func(t *testing.T) {
			missing := incompleteConditions("Thing", in("a"), []metav1.Condition{tc.condition})
			NewWithT(t).Expect(tc.found).To(Equal(len(missing) == 0), "%v", missing)
		})
	}
}

// An object without further events is also reported if it has no summary.
func TestMissingSummaryIsReportedAfterTheGracePeriod(t *testing.T) {
	g := NewWithT(t)
	f := newFollower(nil)
	config := func(name string, age time.Duration, conditions ...metav1.Condition) *bootstrapv1.OpenshiftAssistedConfig {
		c := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{
			Namespace: "chaos", Name: name,
			UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
		}}
		c.Status.Conditions = conditions
		return c
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "HostInstalled"}
	f.record(config("mute", 2*grace), false)
	f.record(config("young", grace/2), false) // its manager may be down
	f.record(config("well", 2*grace), false)
	f.record(config("well", 2*grace, ready), false)
	f.record(config("gone", 2*grace), false)
	f.record(config("gone", 2*grace), true)
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: config("c", 2*grace).ObjectMeta}
	controlPlane.Status.Conditions = []metav1.Condition{ready} // the summary of a control plane is Available
	f.record(controlPlane, false)
	f.judgeSilent()
	g.Expect(f.broken).To(ConsistOf(
		HaveField("What", "OpenshiftAssistedConfig chaos/mute has no condition Ready"),
		HaveField("What", "OpenshiftAssistedControlPlane chaos/c has no condition Available")))
}

// living returns existing Machines by their UIDs, which are their names.
func living(master bool, names ...string) map[types.UID]*life {
	found := map[types.UID]*life{}
	for _, name := range names {
		found[types.UID(name)] = &life{name: name, master: master}
	}
	return found
}

func TestExtraObjectsAreReported(t *testing.T) {
	uids := func(names ...string) map[types.UID]string {
		found := map[types.UID]string{}
		for _, name := range names {
			found[types.UID(name)] = name
		}
		return found
	}
	for situation, tc := range map[string]struct {
		change func(*census)
		double bool
	}{
		"as many as wanted":    {func(*census) {}, false},
		"one Machine too many": {func(c *census) { c.machines["d"] = &life{name: "d", master: true} }, true},
		"a replaced Machine": {
			func(c *census) { c.machines["d"], c.machines["a"].requested = &life{name: "d", master: true}, true }, false,
		},
		"two Machines for one replaced Machine": {
			func(c *census) { maps.Copy(c.machines, living(true, "d", "e")); c.machines["a"].requested = true }, true,
		},
		"a master for a replaced worker": {func(c *census) {
			c.machines["d"], c.machines["w"] = &life{name: "d", master: true}, &life{name: "w", requested: true}
		}, true},
		"one too many with the name of a replaced Machine": {func(c *census) {
			c.machines["a"].requested, c.machines["a2"], c.machines["d"] = true, &life{name: "a", master: true}, &life{name: "d", master: true}
		}, true},
		"while the cluster is installed again": {
			func(c *census) { maps.Copy(c.machines, living(true, "d", "e", "f")); c.retried = true }, false,
		},
		"after the cluster was installed again": {func(c *census) { c.replaceAll(); maps.Copy(c.machines, living(true, "d", "e", "f")) }, false},
		"one too many for another installation": {
			func(c *census) { c.replaceAll(); maps.Copy(c.machines, living(true, "d", "e", "f", "g")) },
			true,
		},
		"two ClusterDeployments": {func(c *census) { c.made["ClusterDeployment"] = uids("x", "y") }, true},
		"another one after a foreign deletion": {func(c *census) {
			c.made["ClusterDeployment"],
				c.excused["ClusterDeployment"] = uids("x", "y"), 1
		}, false},
		"two AgentClusterInstalls": {func(c *census) { c.made["AgentClusterInstall"] = uids("x", "y") }, true},
		"one InfraEnv too many":    {func(c *census) { c.made["InfraEnv"] = uids("a", "b", "c", "d") }, true},
		"another InfraEnv after a foreign deletion": {
			func(c *census) { c.made["InfraEnv"], c.excused["InfraEnv"] = uids("a", "b", "c", "d"), 1 },
			false,
		},
		"two hosts for one Machine":          {func(c *census) { c.consumers[in("a")] = []string{"x", "y"} }, true},
		"a host that moved between Machines": {func(c *census) { c.consumers[in("b")], c.consumers[in("a")] = []string{"x"}, nil }, false},
	} {
		t.Run(situation, func(t *testing.T) {
			c := newFollower(nil).census("chaos")
			c.replicas, c.machines = 3, living(true, "a", "b", "c")
			c.made["ClusterDeployment"], c.made["AgentClusterInstall"], c.made["InfraEnv"] = uids("x"), uids("x"), uids("a", "b", "c")
			tc.change(c)
			finding := c.extraObjects("chaos")
			NewWithT(t).Expect(tc.double).To(Equal(len(finding) > 0), "%v", finding)
		})
	}
}

// Excuses end when a cluster is installed again, or applied again.
func TestExcusesEnd(t *testing.T) {
	g, f := NewWithT(t), newFollower(nil)
	c := f.census("chaos")
	registration := deletion{by: accounts[env.ControlPlane], resource: "clusterdeployments", name: "c", at: time.Now()}
	g.Expect(c.isRequested(registration)).To(BeFalse())
	f.requestRetry("chaos")
	g.Expect(c.isRequested(registration)).To(BeTrue())
	f.finishRetry("chaos")
	g.Expect(c.isRequested(registration)).To(BeFalse(), "the cluster is installed")

	f.recordAbandonment("chaos")
	c.made["Metal3Machine"] = map[types.UID]string{"1": "before"}
	f.recordDeletion("chaos")
	g.Expect(c.isRequested(registration)).To(BeTrue())
	f.reapplied("chaos")
	g.Expect(c.isRequested(registration)).To(BeFalse(), "the registration belongs to the cluster that was applied again")
	g.Expect(c.orphans("chaos")).To(BeEmpty())
	c.made["Metal3Machine"]["2"] = "after"
	g.Expect(c.orphans("chaos")).To(ConsistOf(ContainSubstring("after")))
}

// The disks of masters of an abandoned installation may all be wiped.
func TestWipedVoterIsReported(t *testing.T) {
	g, f := NewWithT(t), newFollower(nil)
	before, after := lab.WipedMember{Node: "a", Time: time.Unix(1, 0)}, lab.WipedMember{Node: "a", Time: time.Unix(2, 0)}
	f.requestRetry("chaos")
	f.judgeWipe("chaos", before)
	f.finishRetry("chaos")
	f.judgeWipe("chaos", before)
	g.Expect(f.broken).To(BeEmpty())
	f.judgeWipe("chaos", after)
	g.Expect(f.broken).To(ConsistOf(HaveField("Rule", lossRule)))
}

// A voter is removed from etcd only for its own Machine that is being deleted.
func TestRemovedMembers(t *testing.T) {
	voters := func(nodes ...string) (list []lab.EtcdMember) {
		for _, node := range nodes {
			list = append(list, lab.EtcdMember{ID: uint64(node[0]), Name: node, Voter: true})
		}
		return list
	}
	machine := func(name, node string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "chaos", Name: name, UID: types.UID(name)}}
		m.Status.NodeRef.Name = node
		return m
	}
	for situation, tc := range map[string]struct {
		now    []lab.EtcdMember
		change func(f *follower, a *clusterv1.Machine)
		broken bool
	}{
		"nothing is removed": {now: voters("a", "b", "c")},
		"the Machine stays":  {now: voters("b", "c"), broken: true},
		"the Machine is being deleted": {now: voters("b", "c"), change: func(f *follower, a *clusterv1.Machine) {
			a.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			f.record(a, false)
		}},
		"the Machine is deleted": {now: voters("b", "c"), change: func(f *follower, a *clusterv1.Machine) { f.record(a, true) }},
		"another Machine has its Node later": {
			now:    voters("b", "c"),
			change: func(f *follower, a *clusterv1.Machine) { f.record(a, true); f.record(machine("next", "a"), false) },
		},
		"another Machine is being deleted": {now: voters("b", "c"), change: func(f *follower, _ *clusterv1.Machine) {
			other := machine("other", "b")
			other.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			f.record(other, false)
		}, broken: true},
		"the member was added again":     {now: append(voters("b", "c"), lab.EtcdMember{ID: 1, Name: "a", Voter: true}), broken: true},
		"the cluster is installed again": {now: voters("b", "c"), change: func(f *follower, _ *clusterv1.Machine) { f.requestRetry("chaos") }},
		"the cluster is being deleted":   {now: voters("b", "c"), change: func(f *follower, _ *clusterv1.Machine) { f.recordDeletion("chaos") }},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), newFollower(nil)
			a := machine("machine-a", "a")
			f.record(a, false)
			f.recordMembers("chaos", append(voters("a", "b", "c"), lab.EtcdMember{ID: 9, Name: "etcd-bootstrap", Voter: true}))
			f.recordMembers("chaos", tc.now)
			if tc.change != nil {
				tc.change(f, a)
			}
			f.judgeRemovals(false)
			g.Expect(f.broken).To(BeEmpty(), "events of Machines may be late")
			f.judgeRemovals(true)
			if tc.broken {
				g.Expect(f.broken).To(ConsistOf(And(HaveField("Rule", memberRule),
					HaveField("What", ContainSubstring("Machine machine-a is not being deleted")))))
			} else {
				g.Expect(f.broken).To(BeEmpty())
			}
		})
	}
}

// The storm may end before an answer arrives: an object may have been deleted without an answer.
func TestDeletionExcusesTheReplacement(t *testing.T) {
	for situation, tc := range map[string]struct {
		answer  error
		excused int
	}{
		"it was deleted":                    {nil, 1},
		"it did not exist":                  {apierrors.NewNotFound(schema.GroupResource{Resource: "infraenvs"}, "a"), 0},
		"the storm ended before the answer": {context.Canceled, 1},
		"no answer":                         {apierrors.NewTimeoutError("etcd", 1), 1},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), newFollower(nil)
			excused := func() int { return f.census("chaos").excused["InfraEnv"] }
			err := f.excuse("chaos", []string{"InfraEnv"}, func() error {
				g.Expect(excused()).To(Equal(1), "another one may be seen before the answer")
				return tc.answer
			})
			g.Expect(errors.Is(err, tc.answer)).To(BeTrue())
			g.Expect(excused()).To(Equal(tc.excused))
		})
	}
}

func TestObjectsWithoutMachineAreReported(t *testing.T) {
	g := NewWithT(t)
	c := newFollower(nil).census("chaos")
	c.machines = living(false, "a")
	c.made["OpenshiftAssistedConfig"], c.made["Metal3Machine"] = map[types.UID]string{"2": "a"}, map[types.UID]string{"3": "a"}
	g.Expect(c.orphans("chaos")).To(BeEmpty())
	c.made["OpenshiftAssistedConfig"]["4"] = "b"
	g.Expect(c.orphans("chaos")).To(HaveLen(1))
	c.made["Metal3Machine"]["5"] = "b"
	g.Expect(c.orphans("chaos")).To(HaveLen(2))
	c.abandoned = true
	g.Expect(c.orphans("chaos")).To(BeEmpty(), "the Machine was no longer wanted")
}

func TestSecretsInObjectsAreReported(t *testing.T) {
	const token = "eyJhbGciOiJFUzI1NiJ9.eyJpbmZyYV9lbnZfaWQi.x"
	object := func(group, kind string, content map[string]any) *unstructured.Unstructured {
		content["apiVersion"], content["kind"] = group+"/v1", kind
		return &unstructured.Unstructured{Object: content}
	}
	conditions := func(message string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"message": message}}}}
	}
	for situation, tc := range map[string]struct {
		object *unstructured.Unstructured
		found  bool
	}{
		"the password in any field": {object("bootstrap.cluster.x-k8s.io", "X",
			map[string]any{"spec": map[string]any{"x": "a" + lab.PullSecretPassword}}), true},
		"encoded": {object("agent-install.openshift.io", "X",
			map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": lab.PullSecretAuth}}}), true},
		"the password of a BMC": {object("agent-install.openshift.io", "X",
			map[string]any{"spec": map[string]any{"x": hosts.BMCPassword}}), true},
		"a token in a message": {object("bootstrap.cluster.x-k8s.io", "X", conditions("see https://x?a="+token)), true},
		"a token in an Event":  {object("", "Event", map[string]any{"message": token}), true},
		"a token in the URL that a host boots": {object("infrastructure.cluster.x-k8s.io", "Metal3Machine",
			map[string]any{"spec": map[string]any{"url": "https://x?api_key=" + token}}), false},
		"a token in a condition of assisted-service": {
			object("agent-install.openshift.io", "InfraEnv", conditions("see https://x?api_key="+token)),
			false,
		},
		"nothing": {object("bootstrap.cluster.x-k8s.io", "X", conditions("the host is installed")), false},
	} {
		t.Run(situation, func(t *testing.T) {
			where := findSecret(tc.object)
			NewWithT(t).Expect(tc.found).To(Equal(where != ""), where)
		})
	}
}

func TestApprovedForgeriesAreReported(t *testing.T) {
	request := func(name string, kind certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequest {
		r := certificatesv1.CertificateSigningRequest{}
		r.Name, r.Status.Conditions = name, []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Reason: "KubeletOfMachine"}}
		return r
	}
	g, forged := NewWithT(t), map[string]string{"forged": "a foreign host"}
	g.Expect(approvedOf([]certificatesv1.CertificateSigningRequest{
		request("honest", certificatesv1.CertificateApproved),
		request("forged", certificatesv1.CertificateDenied),
		{},
	}, forged)).To(BeEmpty())
	g.Expect(approvedOf([]certificatesv1.CertificateSigningRequest{request("forged", certificatesv1.CertificateApproved)},
		forged)).To(ConsistOf(ContainSubstring("for a foreign host was approved")))
}

func TestLogIsReadOnce(t *testing.T) {
	g := NewWithT(t)
	path, f := filepath.Join(t.TempDir(), "manager.log"), newFollower(nil)
	write := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = file.WriteString(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(file.Close()).To(Succeed())
	}
	write("all is well\nbegun")
	end, err := f.readLog(path, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(end).To(BeEquivalentTo(len("all is well\n")), "an incomplete line is read later")
	g.Expect(f.broken).To(BeEmpty())
	write(" with " + lab.PullSecretPassword + "\nE1124 Observed a panic: nil map\n")
	_, err = f.readLog(path, end)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.broken).To(ConsistOf(HaveField("Rule", secretRule), HaveField("Rule", panicRule)))
	g.Expect(panics.MatchString("WARNING: DATA RACE\n")).To(BeTrue())
	for _, v := range f.broken {
		g.Expect(v.What).NotTo(ContainSubstring(lab.PullSecretPassword), "the report does not repeat the secret")
	}
}
