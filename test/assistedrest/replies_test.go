package assistedrest

import (
	"encoding/json"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

func errorsIsNotFound(err error) bool { return errors.Is(err, hosts.ErrNotFound) }

func TestReplies(t *testing.T) {
	hardware := hosts.NewHardware("host")
	hardware.NICs[1].Addresses = []string{"192.168.111.20/24"}
	failure := ""
	agent := hosts.Agent{Inventory: hardware.Inventory(), ImageFailure: func(string) string { return failure }}
	for name, tc := range map[string]struct {
		kind     models.StepType
		argument string
		failure  string
		code     int64
		want     string
	}{
		"other hosts": {
			kind: models.StepTypeConnectivityCheck,
			argument: `[{"host_id":"0a1b2c3d-0000-0000-0000-000000000000","nics":[
				{"name":"eth0","mac":"02:00:00:00:00:01","ip_addresses":["192.168.111.21"]},{"name":"eth1"}]}]`,
			want: `{"remote_hosts":[{"host_id":"0a1b2c3d-0000-0000-0000-000000000000",
				"l2_connectivity":[{"outgoing_nic":"eth1","outgoing_ip_address":"192.168.111.20",
					"remote_ip_address":"192.168.111.21","remote_mac":"02:00:00:00:00:01","successful":true}],
				"l3_connectivity":[{"outgoing_nic":"eth1","remote_ip_address":"192.168.111.21","average_rtt_ms":0.2,"successful":true}],
				"mtu_report":[{"outgoing_nic":"eth1","remote_ip_address":"192.168.111.21","mtu_successful":true}]}]}`,
		},
		"names of the cluster, and the one that must not be there": {
			kind:     models.StepTypeDomainResolution,
			argument: `{"domains":[{"domain_name":"api.c1.example.com"},{"domain_name":"validateNoWildcardDNS.c1.example.com."}]}`,
			want: `{"resolutions":[{"domain_name":"api.c1.example.com","ipv4_addresses":["192.168.111.5"],"ipv6_addresses":null,"cnames":[]},
				{"domain_name":"validateNoWildcardDNS.c1.example.com.","ipv4_addresses":null,"ipv6_addresses":null,"cnames":[]}]}`,
		},
		"virtual addresses": {
			kind: models.StepTypeVerifyVips, argument: `[{"vip":"192.168.111.250","vip_type":"api"}]`,
			want: `[{"vip":"192.168.111.250","vip_type":"api","verification":"succeeded"}]`,
		},
		"images": {
			kind: models.StepTypeContainerImageAvailability, argument: `{"images":["quay.io/a"]}`,
			want: `{"images":[{"name":"quay.io/a","result":"success","size_bytes":300000000,"time":1.5,"download_rate":200}]}`,
		},
		"images that cannot be pulled": {
			kind: models.StepTypeContainerImageAvailability, argument: `{"images":["quay.io/a"]}`, failure: "no route", code: 1,
			want: `{"images":[{"name":"quay.io/a","result":"failure"}]}`,
		},
		"disk": {
			kind: models.StepTypeInstallationDiskSpeedCheck, argument: `{"path":"/dev/sda"}`,
			want: `{"path":"/dev/sda","io_sync_duration":2}`,
		},
		"machine config server": {
			kind: models.StepTypeAPIVipConnectivityCheck, argument: `{"url":"http://api:22624/config/worker"}`,
			want: `{"is_success":true,"url":"http://api:22624/config/worker","ignition":"{\"ignition\":{\"version\":\"3.2.0\"}}"}`,
		},
		"time": {kind: models.StepTypeNtpSynchronizer, want: `{"ntp_sources":[{"source_name":"ntp.laboratory","source_state":"synced"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			failure = tc.failure
			reply, known, err := replyTo(&models.Step{StepType: tc.kind, StepID: "id", Args: []string{tc.argument}}, agent)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(known).To(BeTrue())
			g.Expect(reply.StepID).To(Equal("id"))
			g.Expect(reply.ExitCode).To(Equal(tc.code))
			g.Expect(reply.Output).To(MatchJSON(tc.want))
		})
	}
}

func TestInventoryIsThatOfTheMachine(t *testing.T) {
	g := NewWithT(t)
	hardware := hosts.NewHardware("host")
	reply, _, err := replyTo(&models.Step{StepType: models.StepTypeInventory}, hosts.Agent{Inventory: hardware.Inventory()})
	g.Expect(err).NotTo(HaveOccurred())
	inventory := &models.Inventory{}
	g.Expect(json.Unmarshal([]byte(reply.Output), inventory)).To(Succeed())
	g.Expect(inventory).To(Equal(hardware.Inventory()))
}

func TestStepsThatCannotBeAnswered(t *testing.T) {
	g := NewWithT(t)
	_, known, err := replyTo(&models.Step{StepType: "made-up"}, hosts.Agent{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(known).To(BeFalse())
	for _, arguments := range [][]string{nil, {"{"}} {
		_, _, err = replyTo(&models.Step{StepType: models.StepTypeVerifyVips, Args: arguments}, hosts.Agent{})
		g.Expect(err).To(MatchError(ContainSubstring("verify-vips")))
	}
}
