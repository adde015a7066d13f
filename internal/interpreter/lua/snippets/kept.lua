-- How many of n pods a partition keeps old. OpenKruise rounds up, and lets one pod go at least unless it says 100%.
local function kept(partition, n, down)
  if partition == nil or n <= 0 then
    return 0
  elseif type(partition) == "number" then
    return math.min(math.max(partition, 0), n)
  end
  local percent = string.match(partition, "^([0-9]+)%%$") or string.match(partition, "^([0-9]+%.[0-9]+)%%$")
  if percent == nil or #partition > 16 then
    malformed()
  end
  local share = tonumber(percent) * n / 100
  if down then
    return math.floor(math.min(share, n))
  end
  local count = math.min(math.ceil(share), n + 1)
  if n > 1 and count == n and partition ~= "100%" then
    count = n - 1
  end
  return math.min(count, n)
end
