// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Backup is all that a cluster's API server has stored at one time.
type Backup struct {
	prefix string
	pairs  []pair
}

// pair is one of etcd's keys with its value, in base64 (etcd's JSON gateway, https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/).
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Backup reads what a cluster's API server has stored.
func (f *Fleet) Backup(ctx context.Context, cluster string) (*Backup, error) {
	b := &Backup{prefix: "/" + cluster + "/"}
	var found struct {
		KVs []pair `json:"kvs"`
	}
	if err := f.etcd(ctx, "range", b.keys(), &found); err != nil {
		return nil, fmt.Errorf("back up %s: %w", cluster, err)
	}
	b.pairs = found.KVs
	return b, nil
}

// Restore replaces what a cluster's API server has stored by a backup. The API server must not run.
func (f *Fleet) Restore(ctx context.Context, b *Backup) error {
	if err := f.etcd(ctx, "deleterange", b.keys(), nil); err != nil {
		return fmt.Errorf("restore %s: %w", b.prefix, err)
	}
	for _, p := range b.pairs {
		if err := f.etcd(ctx, "put", p, nil); err != nil {
			return fmt.Errorf("restore %s: %w", b.prefix, err)
		}
	}
	return nil
}

// keys are all that begin with the prefix.
func (b *Backup) keys() any {
	end := []byte(b.prefix)
	end[len(end)-1]++
	return map[string]string{
		"key": base64.StdEncoding.EncodeToString([]byte(b.prefix)), "range_end": base64.StdEncoding.EncodeToString(end),
	}
}

func (f *Fleet) etcd(ctx context.Context, call string, body, answer any) error {
	port, err := f.state.port("etcd")
	if err != nil {
		return err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, httpURL(port, "/v3/kv/"+call), bytes.NewReader(raw))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("etcd %s: %s: %s", call, resp.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
