-- Lua at work: tables, metatables, closures, strings, sorting, coroutines. N is how many rounds.
local seed = 42
local function draw(below)
  seed = (seed * 1103515245 + 12345) & 0x7fffffff
  return seed % below
end

local Tree = {}
Tree.__index = Tree
function Tree.insert(self, key)
  local node = self.root
  if not node then self.root = { key = key, count = 1 } return end
  while true do
    if key == node.key then node.count = node.count + 1 return end
    local side = key < node.key and "left" or "right"
    if not node[side] then node[side] = { key = key, count = 1 } return end
    node = node[side]
  end
end
local function walk(node)
  if node then
    walk(node.left)
    coroutine.yield(node.key)
    walk(node.right)
  end
end

local total = 0
for round = 1, N do
  local tree = setmetatable({}, Tree)
  for _ = 1, 5000 do tree:insert(draw(20000)) end
  for key in coroutine.wrap(function() walk(tree.root) end) do total = total + key end

  local words = {}
  for i = 1, 3000 do words[i] = string.format("w%05d-%s", draw(100000), ("x"):rep(draw(9))) end
  table.sort(words)
  local counts = {}
  for word in table.concat(words, " "):gmatch("%w+") do counts[word] = (counts[word] or 0) + 1 end
  for _, count in pairs(counts) do total = total + count end

  local size = 60
  local a, b, c = {}, {}, {}
  for i = 1, size do
    a[i], b[i], c[i] = {}, {}, {}
    for j = 1, size do a[i][j], b[i][j] = i + j, i - j + 0.5 end
  end
  for i = 1, size do
    for j = 1, size do
      local sum = 0.0
      for k = 1, size do sum = sum + a[i][k] * b[k][j] end
      c[i][j] = sum
    end
  end
  total = total + c[size][size]

  local adders = {}
  for i = 1, 2000 do adders[i] = function(x) total = total + x; return i + x end end
  local x = 0
  for i = 1, #adders do x = adders[i](x) % 1000 end
end
print(total)
