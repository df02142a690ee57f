# One record of ours in the names of qlog 0.3, which older viewers want.
if .file_schema then
  {qlog_version: "0.3", qlog_format: "JSON-SEQ", title,
   trace: {title, vantage_point: .trace.vantage_point,
           common_fields: {ODCID: .trace.common_fields.group_id, time_format: "relative",
                           reference_time: 0}}}
else
  .name |= ({"quic:recovery_metrics_updated": "recovery:metrics_updated",
             "quic:congestion_state_updated": "recovery:congestion_state_updated",
             "quic:packet_lost": "recovery:packet_lost",
             "quic:parameters_set": "transport:parameters_set",
             "quic:packet_sent": "transport:packet_sent",
             "quic:packet_received": "transport:packet_received",
             "quic:packet_dropped": "transport:packet_dropped",
             "quic:key_updated": "security:key_updated"}[.] // sub("^quic:"; "connectivity:"))
  | if .data.frames then
      .data.frames |= map(if .raw then . + {length: .raw.payload_length} else . end)
    else . end
end
