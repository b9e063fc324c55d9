package hosts

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
)

const testInfraEnv = "988939b3-52d0-41d8-8790-25599548ce7a"

// token returns a JWT with the claims and an invalid signature.
func token(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + part([]byte(claims)) + "." + part([]byte("signature"))
}

// discoveryIgnition returns an Ignition config that starts a discovery agent.
func discoveryIgnition(exec string) []byte {
	raw, err := json.Marshal(map[string]any{
		"ignition": map[string]any{"version": "3.1.0"},
		"systemd": map[string]any{"units": []any{map[string]any{
			"name": "agent.service", "enabled": true,
			"contents": "[Service]\nExecStart=" + exec + "\n",
		}}},
	})
	if err != nil {
		panic(err)
	}
	return raw
}

func TestNewMedium(t *testing.T) {
	liveISO, qcow2 := ptr.To("live-iso"), ptr.To("qcow2")
	discovery := discoveryIgnition("/usr/local/bin/agent --url http://svc --infra-env-id " + testInfraEnv + " --insecure=true")
	for name, tc := range map[string]struct {
		image    metal3api.Image
		userData []byte
		want     Boot
	}{
		"live ISO by id": {
			image: metal3api.Image{URL: "http://127.0.0.1:8888/byid/" + testInfraEnv + "/4.22/x86_64/minimal.iso", DiskFormat: liveISO},
			want:  Boot{System: Discovery, InfraEnvID: testInfraEnv, Source: "live ISO of InfraEnv " + testInfraEnv},
		},
		"live ISO behind a path prefix, by API key": {
			image: metal3api.Image{
				URL:        "https://img/service/byapikey/" + token(`{"infra_env_id":"`+testInfraEnv+`"}`) + "/4.22/x86_64/full.iso",
				DiskFormat: liveISO,
			},
			want: Boot{System: Discovery, InfraEnvID: testInfraEnv, Source: "live ISO of InfraEnv " + testInfraEnv},
		},
		"the same URL written to disk is no live ISO": {
			image: metal3api.Image{URL: "http://img/byid/" + testInfraEnv + "/4.22/x86_64/minimal.iso", Checksum: "x"},
			want:  Boot{System: Unknown, Source: "disk image http://img/byid/" + testInfraEnv + "/4.22/x86_64/minimal.iso"},
		},
		"placeholder ISO": {
			image: metal3api.Image{URL: "http://user:pw@example.com/placeholder.iso?key=secret", DiskFormat: liveISO},
			want:  Boot{System: Unknown, Source: "live ISO http://example.com/placeholder.iso"},
		},
		"ISO with a token of a cluster": {
			image: metal3api.Image{URL: "http://img/byapikey/" + token(`{"cluster_id":"x"}`) + "/4.22/x86_64/full.iso?x=y", DiskFormat: liveISO},
			want:  Boot{System: Unknown, Source: "live ISO http://img/byapikey/TOKEN/4.22/x86_64/full.iso"},
		},
		"disk image with a discovery ignition": {
			image: metal3api.Image{URL: "http://mirror/scos.qcow2", Checksum: "x", DiskFormat: qcow2}, userData: discovery,
			want: Boot{System: Discovery, InfraEnvID: testInfraEnv, Source: "disk image http://mirror/scos.qcow2"},
		},
		"disk image with another ignition": {
			image:    metal3api.Image{URL: "http://mirror/scos.qcow2", Checksum: "x", DiskFormat: qcow2},
			userData: []byte(`{"ignition":{"version":"3.1.0"}}`),
			want:     Boot{System: Unknown, Source: "disk image http://mirror/scos.qcow2"},
		},
		"disk image without user data": {
			image: metal3api.Image{URL: "http://mirror/scos.qcow2", Checksum: "x", DiskFormat: qcow2},
			want:  Boot{System: Unknown, Source: "disk image http://mirror/scos.qcow2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(newMedium(tc.image, tc.userData).boot).To(Equal(tc.want))
		})
	}
}

func TestTokenOfISO(t *testing.T) {
	g := NewWithT(t)
	key := token(`{"infra_env_id":"` + testInfraEnv + `"}`)
	for url, wanted := range map[string]string{
		"https://img/byapikey/" + key + "/4.22/x86_64/full.iso":                  key,
		"https://img/byid/" + testInfraEnv + "/4.22/x86_64/full.iso":             "",
		"https://img/images/" + testInfraEnv + "?api_key=" + key + "&type=x.iso": key,
	} {
		m := newMedium(metal3api.Image{URL: url, DiskFormat: ptr.To("live-iso")}, nil)
		g.Expect(m.token).To(Equal(wanted))
		g.Expect(m.boot.InfraEnvID).To(Equal(testInfraEnv))
	}
}

func TestMachineBootsNoImageOfAnotherArchitecture(t *testing.T) {
	for situation, c := range map[string]struct {
		image, machine string
		boots          System
	}{
		"its own":                      {"/byid/" + testInfraEnv + "/4.22/x86_64/full.iso", "x86_64", Discovery},
		"its own, spelled differently": {"/byid/" + testInfraEnv + "/4.22/arm64/full.iso", "aarch64", Discovery},
		"another":                      {"/byid/" + testInfraEnv + "/4.22/x86_64/full.iso", "aarch64", Unknown},
		"an unknown architecture":      {"/images/" + testInfraEnv, "aarch64", Discovery},
	} {
		t.Run(situation, func(t *testing.T) {
			machine := NewHardware("machine")
			machine.Architecture = c.machine
			m := newMedium(metal3api.Image{URL: "https://img" + c.image, DiskFormat: ptr.To("live-iso")}, nil)
			NewWithT(t).Expect(m.bootOn(machine).System).To(Equal(c.boots))
		})
	}
}

func TestAgentConfigOf(t *testing.T) {
	known := AgentConfig{InfraEnvID: testInfraEnv}
	for name, tc := range map[string]struct {
		unit Unit
		want AgentConfig
	}{
		"separate argument": {Unit{Enabled: true, Contents: "ExecStart=/agent --infra-env-id " + testInfraEnv}, known},
		"joined argument":   {Unit{Enabled: true, Contents: "ExecStart=/agent --infra-env-id=" + testInfraEnv + " --x"}, known},
		"continued flags":   {Unit{Enabled: true, Contents: "ExecStart=/agent \\\n  --infra-env-id " + testInfraEnv}, known},
		"everything": {
			Unit{Enabled: true, Contents: "Environment=HTTP_PROXY=\nEnvironment=PULL_SECRET_TOKEN=a.b.c\n" +
				"ExecStart=/agent --url https://svc:1 --infra-env-id " + testInfraEnv + " --agent-version quay.io/agent:1 --insecure=true  \n"},
			AgentConfig{ServiceURL: "https://svc:1", InfraEnvID: testInfraEnv, Token: "a.b.c", AgentVersion: "quay.io/agent:1"},
		},
		"in a comment":        {Unit{Enabled: true, Contents: "# ExecStart=/agent --infra-env-id x\nExecStart=/agent"}, AgentConfig{}},
		"not enabled":         {Unit{Contents: "ExecStart=/agent --infra-env-id " + testInfraEnv}, AgentConfig{}},
		"masked":              {Unit{Enabled: true, Masked: true, Contents: "ExecStart=/agent --infra-env-id " + testInfraEnv}, AgentConfig{}},
		"without an InfraEnv": {Unit{Enabled: true, Contents: "ExecStart=/agent --url http://svc"}, AgentConfig{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			agent, err := AgentConfigOf(&Ignition{Units: map[string]Unit{"agent.service": tc.unit}})
			g.Expect(agent).To(Equal(tc.want))
			g.Expect(err == nil).To(Equal(tc.want.InfraEnvID != ""))
		})
	}
}

func TestDecodeIgnition(t *testing.T) {
	g := NewWithT(t)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err := writer.Write([]byte("zipped text"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(writer.Close()).To(Succeed())
	child := `{"ignition":{"version":"3.2.0"},"storage":{"files":[
		{"path":"/etc/child","contents":{"source":"data:,from%20child"}},{"path":"/etc/both","contents":{"source":"data:,child"}}]}}`
	raw := `{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"data:;base64,` +
		base64.StdEncoding.EncodeToString([]byte(child)) + `"}]}},
		"storage":{"files":[
			{"path":"/etc/both","overwrite":true,"mode":420,"contents":{"source":"data:text/plain;charset=utf-8;base64,cGFyZW50"}},
			{"path":"/etc/zipped","contents":{"compression":"gzip","source":"data:;base64,` +
		base64.StdEncoding.EncodeToString(packed.Bytes()) + `"}},
			{"path":"/etc/appended","append":[{"source":"data:,one"},{"source":"data:,two"}]}]},
		"systemd":{"units":[{"name":"a.service","enabled":true,"contents":"[Unit]\n","dropins":[{"name":"10.conf","contents":"[Service]\n"}]}]}}`

	decoded, err := DecodeIgnition([]byte(raw))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(decoded.Files).To(Equal(map[string]File{
		"/etc/child": {Contents: "from child"}, "/etc/both": {Contents: "parent", Mode: 0o644},
		"/etc/zipped": {Contents: "zipped text"}, "/etc/appended": {Contents: "onetwo"},
	}))
	g.Expect(decoded.Units).To(Equal(map[string]Unit{
		"a.service": {Contents: "[Unit]\n", Enabled: true, DropIns: map[string]string{"10.conf": "[Service]\n"}},
	}))
	for name, bad := range map[string]string{
		"empty": ``, "not ignition": `#cloud-config`, "version 2": `{"ignition":{"version":"2.2.0"}}`,
		"file to fetch": `{"ignition":{"version":"3.1.0"},"storage":{"files":[{"path":"/a","contents":{"source":"https://x/y"}}]}}`,
	} {
		_, err := DecodeIgnition([]byte(bad))
		g.Expect(err).To(HaveOccurred(), name)
	}
}
